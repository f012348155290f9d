//! The HTTPS server for AdmissionReviews of the guard and of policies. Every replica runs one.
//!
//! Its certificate comes from a ServingCertificate, which an annotation on the Service requests, as for any
//! other Service. The rotation also observes it as for any other, with TLS handshakes. Each handshake reads
//! the certificate from the index, so that a new one needs no restart and no file.

mod bodies;
pub(crate) mod certificate;
mod guard;
pub(crate) mod review;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use bodies::{Bodies, ReadBodyError, SHORT_BODY};
pub(crate) use certificate::CertificateResolver;
pub use guard::{PATH, REMOVAL_PATH};
pub use review::InvalidReview;
pub(crate) use server::{Admission, serve};
pub use server::{AdmissionService, CERTIFICATES_ACCOUNT, service_account_user};
