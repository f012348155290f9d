//! Certificates of our own: CAs that may sign for one Service only, its serving certificates, and the cross
//! certificates that lead from one CA to the next. Issued and inspected without IO: keys, serial numbers and the
//! time are arguments.
//!
//! What is issued verifies in Go (`crypto/x509`), OpenSSL and webpki; the reasons are noted where a rule is applied.

mod authority;
mod certificate;
mod credentials;
mod dns_names;
pub mod pem;
mod private_key;
#[cfg(any(test, feature = "testing"))]
pub mod sample;
#[cfg(test)]
mod tests;
mod validity;

pub use authority::{CertificateAuthority, IssueError, ReadAuthorityError, Terms};
pub use certificate::{Certificate, InspectError};
pub use credentials::{Credentials, ReadCredentialsError};
pub use dns_names::{DnsNames, InvalidDnsNames};
pub use private_key::{KeyAlgorithm, PrivateKey, ReadPrivateKeyError};
pub use validity::Validity;
