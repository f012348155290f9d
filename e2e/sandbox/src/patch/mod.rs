//! JSON, merge and strategic merge patches.

mod json;
mod strategic;

pub use json::{json, merge};
pub use strategic::strategic;
