//! Everything about a bundle that would break an install, or that an API server or OLM would refuse.
//!
//! There are no warnings: what is reported is wrong. Each module has the rules of one subject; texts of rules that OLM
//! has too are OLM's (`operator-controller`, `render/registryv1/validators/validator.go`).

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
