//! Kubernetes objects as a rotation sees them, and as it writes them: the CA Secret, the serving Secret, targets,
//! workloads. No IO: what is read and what is to be written are JSON.
//!
//! A rotation knows certificates by their digests; [`CertificateStore`] has the certificates themselves, from reading the
//! objects to writing them.

mod adoption;
mod ca_secret;
mod certificate_store;
mod issuance;
mod secret;
mod serving_secret;
mod source_record;
mod stored_state;
mod target;
mod workload;

pub use adoption::limit_adoption;
pub use ca_secret::{CaSecret, WriteAuthoritiesError};
pub use certificate_store::{CertificateStore, UnknownCertificate, WriteBundleError, summary};
pub use issuance::{IssueCaError, Mint, new_authorities};
pub use secret::{CertificateRequirements, label_value};
pub use serving_secret::{SecretContents, ServingSecret};
pub use source_record::{LONGEST_OVERLAP, SourceRecord};
pub use target::read_target;
pub use workload::{read_workload, restart_patch};
