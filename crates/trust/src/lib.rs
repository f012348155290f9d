//! Trust: certificates and keys, trust bundles, their rotation, and their injection into what carries a `caBundle`.
//!
//! ```text
//! pki -> trust_bundle -> injection
//!    `-> rotation
//! ```

pub mod injection;
pub mod objects;
pub mod pki;
pub mod rotation;
pub mod trust_bundle;
