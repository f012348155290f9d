//! Health and metrics.

pub mod health;
