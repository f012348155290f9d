//! What is decided of an install, without IO: the plan and what speaks against it, canaries, proof, conditions.

pub mod canary;
pub mod plan;
pub mod proof;
pub mod status;
pub mod traffic;
