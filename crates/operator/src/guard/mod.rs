//! The guard: denies changes by other users to CustomResourceDefinitions whose conversion is claimed.
//!
//! ```text
//! AdmissionReview -> Review -> judge -> Ok, or Refused -> AdmissionReview
//!                                ^
//!        BundleDeployment that the CRD belongs to
//! ```
//!
//! A CRD is claimed while the BundleDeployment in its label exists, and either lists it in its status or has
//! armed a conversion webhook. The guard ignores all other CRDs and all other fields.

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
