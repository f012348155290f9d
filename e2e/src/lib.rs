//! Scenarios, each written once, and what they need to run.

pub mod bed;
pub mod demo;
pub mod gate;
pub mod load;
pub mod operator;
pub mod programs;
pub mod request;
pub mod resource;
pub mod sample;
pub mod scenarios;
pub mod steps;
