//! What templates of pods say about the pods: what each needs to run, and what must be beside it.

pub mod dependencies;
pub mod requirements;

pub use dependencies::dependencies;
pub use requirements::{PodError, requirements};
