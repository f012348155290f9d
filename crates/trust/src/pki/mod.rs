//! Certificates of Windlass: CAs that may sign for one Service only, serving certificates, and cross
//! certificates between consecutive CAs. No IO: keys, serial numbers and the time are arguments.
//!
//! All certificates verify in Go (`crypto/x509`), OpenSSL and webpki; comments state which client requires a
//! rule.

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
