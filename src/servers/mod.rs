//! Health and metrics, and the guard's webhook.

pub mod admission;
pub mod health;
