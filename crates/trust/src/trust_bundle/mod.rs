//! Trust bundles: sets of CA certificates for targets, with one canonical byte form.
//!
//! A [`TrustBundle`] can always be published: it is never empty, malformed or too large.

mod bundle;
#[cfg(test)]
mod handshake_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verify;

pub use bundle::{MAX_ENCODED_LENGTH, TrustBundle, TrustBundleError};
