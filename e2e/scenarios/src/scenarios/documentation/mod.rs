//! Tests of the documentation: its commands succeed, API servers accept its objects, and its policies reject
//! what they should.

mod commands;
mod files;
mod objects;
mod policies;
mod table;

pub(super) use self::{
    commands::every_documented_command_runs, objects::every_documented_object_is_accepted,
    policies::documented_policies_reject_forbidden_installs,
};
