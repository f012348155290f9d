//! Trust bundles: sets of CA certificates as targets carry them, with one canonical byte form.
//!
//! A value of [`TrustBundle`] can be published as it is: it is never empty, never garbage and never too long.

mod bundle;
#[cfg(test)]
mod handshake_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verify;

pub use bundle::{LONGEST_ENCODED, TrustBundle, TrustBundleError};
