//! Schemas of fields without a dedicated type.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
pub(super) use windlass_object::custom_resource::label_selector;

/// Validation rules in CEL, with their messages.
pub(super) fn rules(rules: &[(&str, &str)]) -> Value {
    let rule = |(rule, message): &(&str, &str)| json!({"rule": rule, "message": message});
    rules.iter().map(rule).collect()
}

/// The validation of a rule's operations.
pub(super) fn target_operations() -> Value {
    rules(&[("self.size() == 1 || !('*' in self)", "* must be the only one")])
}

/// The validation of container names.
pub(super) fn containers() -> Value {
    rules(&[("self.size() == 1 || !('*' in self)", "* must be the only one")])
}

/// Any JSON.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
