//! Schemas of fields that have no type of their own here.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
pub(super) use windlass_object::custom_resource::label_selector;

/// Rules in CEL, each with what is said where it does not hold.
pub(super) fn rules(rules: &[(&str, &str)]) -> Value {
    let rule = |(rule, message): &(&str, &str)| json!({"rule": rule, "message": message});
    rules.iter().map(rule).collect()
}

/// What holds for operations of a rule.
pub(super) fn target_operations() -> Value {
    rules(&[("self.size() == 1 || !('*' in self)", "* must be the only one")])
}

/// What holds for names of containers.
pub(super) fn containers() -> Value {
    rules(&[("self.size() == 1 || !('*' in self)", "* must be the only one")])
}

/// Any JSON.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
