//! The documentation, tried: the commands that pages show do what they are shown for, API servers take the objects, and the policies refuse
//! what they say.

mod commands;
mod files;
mod objects;
mod policies;
mod table;

pub(super) use self::{
    commands::every_documented_command_runs, objects::every_documented_object_is_taken,
    policies::documented_policies_refuse_what_they_say,
};
