//! Reads and writes the Kubernetes objects of a rotation: the CA Secret, the serving Secret, targets,
//! workloads. No IO: objects are JSON.
//!
//! A rotation refers to certificates by digest; [`CertificateStore`] holds the certificates themselves.

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
pub use source_record::{MAX_OVERLAP, SourceRecord};
pub use target::read_target;
pub use workload::{read_workload, restart_patch};
