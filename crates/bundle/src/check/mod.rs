//! Checks for everything in a bundle that breaks an install, or that an API server or OLM rejects.
//!
//! Every finding is an error; there are no warnings. Each module contains the rules of one subject. Rules
//! that OLM also has use OLM's texts (`operator-controller`, `render/registryv1/validators/validator.go`).

mod admission;
mod callers;
mod conversions;
mod crds;
mod deployments;
mod generated;
mod install;
mod labels;
mod names;
mod objects;
mod permissions;
mod ports;
mod problems;
mod requirements;
mod rules;
mod webhook_definitions;
mod webhooks;

pub use problems::{Tolerance, check_files, parse, parse_for};
