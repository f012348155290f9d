//! CustomResourceDefinitions: a typed view, their defaults and their validation.

mod approval;
mod defaults;
mod definition;
mod validation;

pub use defaults::default;
pub(crate) use definition::compare_versions;
pub use definition::{Column, CrdVersion, Definition, Names};
pub(crate) use validation::bundle_problem;
pub use validation::validate;
