//! AdmissionReviews, answered over TLS by every replica: those of the guard, and those that policies are asked about.
//!
//! The certificate is one of Windlass's own: the Service asks for it by an annotation, as any other may, and the
//! rotation sees what is served here by dialling it, as anywhere else. What is to be served is looked up in the index at
//! each handshake, so that a new certificate needs no restart and no file.

mod bodies;
mod certificate;
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
