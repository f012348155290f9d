//! Requirements and dependencies of the pods of a template.

pub mod dependencies;
pub mod requirements;

pub use dependencies::dependencies;
pub use requirements::{PodError, requirements};
