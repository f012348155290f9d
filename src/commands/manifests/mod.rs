//! `windlass manifests`: everything that installs Windlass, generated from the types and from what the code does.

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
    Args, certificates_objects, customization_crds, objects, objects_of, operator_condition_crd,
    policies_disarming_objects, policies_objects, policies_of_extension_configs, ui_objects,
};
pub use deployment::image;
pub(super) use document::NAME;
pub use monitoring::{dashboard, rule_groups};
pub(super) use ui::NAME as UI_NAME;
