//! What becomes of a request without a cluster: with data that is known beforehand.

mod known_data;
mod outcome;

pub use self::{
    known_data::{KnownData, KnownResponse},
    outcome::Rehearsal,
};
