//! Scenarios, each written once, and what they need to run.

pub mod audit;
pub mod bed;
pub mod cluster;
pub mod command;
pub mod demo;
pub mod gate;
mod inventory;
pub mod load;
pub mod operator;
pub mod programs;
pub mod request;
pub mod resource;
pub mod sample;
pub mod scenarios;
pub mod steps;
pub mod trial;
