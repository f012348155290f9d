//! Claims. A CustomResourceDefinition has one conversion webhook, so at most one BundleDeployment converts
//! it, and an API has one owner.

mod adoption;
mod api;
mod applied_as;
mod claimant;
mod existing_deployments;
mod installers;
mod owner;
#[cfg(test)]
mod tests;

pub use adoption::{Adoption, ParseAdoptionError};
pub use api::Api;
pub use applied_as::AppliedAs;
pub use claimant::{Claimant, holder, older_unobserved_claimant};
pub use existing_deployments::ExistingDeployments;
pub use owner::{Owner, foreign_object_message};
