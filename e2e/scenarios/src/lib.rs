//! Scenarios, each written once, and what they need to run.

pub mod audit;
pub mod bed;
pub mod cluster;
pub mod command;
pub mod everything;
pub mod gate;
mod inventory;
pub mod leaks;
pub mod lending;
pub mod load;
pub mod operator;
pub mod programs;
pub mod progress;
pub mod request;
mod request_info;
pub mod resource;
pub mod sample;
pub mod scenarios;
pub mod snapshot;
pub mod steps;
pub mod stored;
pub mod trial;
