//! What Windlass knows, without IO: no async, no clock, no environment, no client. `now`, serial numbers and
//! key pairs are arguments.

pub mod bundle;
pub mod canary;
pub mod check;
pub mod claims;
pub mod conversion_review;
pub mod crd_upgrade;
pub mod definition;
pub mod go_duration;
pub mod guard;
pub mod injection;
mod json;
pub mod names;
pub mod object;
pub mod patch;
pub mod path;
pub mod pki;
pub mod plan;
pub mod problem;
pub mod render;
pub mod rotation;
pub mod round_trip;
pub mod status;
pub mod storage_migration;
pub mod text;
pub mod trust_bundle;
pub mod upgrade;
pub mod yaml;
