//! `windlass manifests`: everything that installs Windlass, generated from the types and from what the code does.

mod command;
mod deployment;
mod document;
mod extension_config_policies;
mod guard;
mod interpretations;
mod monitoring;
mod operator_conditions;
mod policies;
mod rbac;

pub use command::{
    Args, certificates_objects, customization_crds, objects, operator_condition_crd, policies_objects,
    policies_of_extension_configs,
};
pub use monitoring::{dashboard, rule_groups};
