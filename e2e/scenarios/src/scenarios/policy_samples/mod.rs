//! The sample policies, asked by an API server about what their cases write: what becomes of it is what the cases say.

mod expectation;
mod objects;
mod player;
mod sample;
mod servers;

pub(super) use self::player::every_sample_policy_does_what_its_cases_say;
