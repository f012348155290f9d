//! Claims: one CustomResourceDefinition has one conversion webhook, so at most one BundleDeployment converts it; and one
//! API has one owner.

mod adoption;
mod api;
mod applied_as;
mod claimant;
mod installers;
mod living_deployments;
mod owner;
#[cfg(test)]
mod tests;

pub use adoption::{Adoption, ParseAdoptionError};
pub use api::Api;
pub use applied_as::AppliedAs;
pub use claimant::{Claimant, holder, older_unobserved_claimant};
pub use living_deployments::LivingDeployments;
pub use owner::{Owner, foreign};
