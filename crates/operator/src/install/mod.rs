//! What is decided of an install, without IO: the plan and what speaks against it, recorded revisions, canaries,
//! conditions.

pub mod canary;
pub mod plan;
pub mod revision;
pub mod status;
