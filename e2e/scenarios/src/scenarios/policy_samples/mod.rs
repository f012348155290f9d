//! The sample policies, called by an API server: their cases have the expected outcome.

mod expectation;
mod objects;
mod player;
mod sample;
mod servers;

pub(super) use self::player::every_sample_policy_passes_its_cases;
