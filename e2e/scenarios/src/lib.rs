//! Scenarios, each written once, and what they need to run.

pub mod audit;
pub mod cainjector;
pub mod cluster;
mod cluster_api;
pub mod cluster_pool;
pub mod command;
pub mod dump;
pub mod forwarder;
mod hook_server;
mod inventory;
pub mod load;
pub mod operator;
pub mod programs;
pub mod progress;
pub mod proxy;
pub mod request;
mod request_info;
pub mod resource;
pub mod sample;
pub mod scenario_durations;
pub mod scenarios;
pub mod secret_scan;
pub mod snapshot;
pub mod steps;
pub mod stored;
pub mod test_cluster;
pub mod trial;
