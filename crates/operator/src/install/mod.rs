//! What is decided of an install, without IO: the plan and what speaks against it, recorded revisions, canaries, proof,
//! conditions.

pub mod canary;
pub mod following;
pub mod immutable;
pub mod overrides;
pub mod plan;
pub mod proof;
pub mod revision;
pub mod status;
pub mod tenancy;
pub mod traffic;
