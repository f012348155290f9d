//! The guard's webhook: AdmissionReviews of CustomResourceDefinitions, answered over TLS by every replica.
//!
//! Its certificate is one of Windlass's own: the Service asks for it by an annotation, as any other may, and the
//! rotation sees what is served here by dialling it, as anywhere else. What is to be served is looked up in the index at
//! each handshake, so that a new certificate needs no restart and no file.

mod bodies;
mod certificate;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use server::{Admission, serve};
pub use server::{CERTIFICATES_ACCOUNT, PATH, REMOVAL_PATH, SECRET, SERVICE, service_account_user};
