//! The requirements of a bundle on the cluster.
//!
//! ```text
//! spec.minKubeVersion, nativeAPIs, customresourcedefinitions.required, apiservicedefinitions.required
//! metadata/dependencies.yaml, olm.properties     -> Requirements
//! ```

mod cel_rule;
mod constraint;
mod dependency;
mod reader;
#[cfg(test)]
mod tests;

pub use cel_rule::{CelError, CelRule};
pub use constraint::{Dependency, RequiredApi, RequiredPackage, Requirement};
pub use reader::Requirements;
