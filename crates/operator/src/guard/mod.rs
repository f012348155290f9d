//! The guard: what nobody but Windlass may do to a CustomResourceDefinition whose conversion is claimed.
//!
//! ```text
//! AdmissionReview -> Review -> judge -> Ok, or Refused -> AdmissionReview
//!                                ^
//!        BundleDeployment that the CRD belongs to
//! ```
//!
//! A CRD is claimed while the BundleDeployment that its label names exists, and either says so in its status or
//! has a webhook in place. Everything else about it, and every other CRD, is none of the guard's business.

mod denial;
mod excerpt;
mod judgement;
mod review;
#[cfg(test)]
mod tests;

pub use crate::admission::InvalidReview;
pub use denial::{Denial, Refused};
pub use judgement::{judge, judge_removal};
pub use review::Review;
