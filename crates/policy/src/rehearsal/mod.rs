//! Evaluates policies without a cluster, with given data.

mod known_data;
mod outcome;

pub use self::{
    known_data::{KnownData, KnownResponse},
    outcome::Rehearsal,
};
