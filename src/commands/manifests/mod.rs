//! `windlass manifests`: everything that installs Windlass, generated from the API types and the code.

mod chart;
mod command;
mod deployment;
mod document;
mod extension_config_policies;
mod guard;
mod interpretations;
mod monitoring;
mod namespace;
mod operator_conditions;
mod policies;
mod rbac;
mod ui;
mod user_facing_roles;

pub use command::{
    Args, certificates_objects, customization_crds, extension_config_policy_objects, objects, objects_of,
    operator_condition_crd, policies_objects, policy_disarm_hook_objects, ui_objects,
};
pub use deployment::image;
pub(super) use document::NAME;
pub use monitoring::{dashboard, rule_groups};
pub(super) use ui::NAME as UI_NAME;
