//! The commands.

mod adoption;
mod annotate;
mod arguments;
mod bundle;
mod bundle_images;
mod bundle_location;
mod catalog;
mod certs;
mod check;
mod cli;
mod cluster;
mod completions;
pub mod connect;
mod documents;
mod follow;
mod history;
mod hooks;
mod install;
mod interpret;
pub mod leader_election;
mod man;
pub mod manifests;
mod missing_rights;
mod policy;
pub mod registry_access;
mod render;
mod report;
mod rollback;
mod rotate;
pub mod run;
mod status;
mod ui;
mod uninstall;

pub use cli::Cli;
