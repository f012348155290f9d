//! What becomes of a request without a cluster: with data that is known beforehand.

mod known_data;
mod rehearsed;

pub use self::{
    known_data::{KnownData, KnownResponse},
    rehearsed::Rehearsal,
};
