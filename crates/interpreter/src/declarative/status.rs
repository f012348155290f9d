//! Reflects the status fields that JSONPaths select.

use json_path::Path;
use serde_json::Value;

use crate::customization::{CustomizationProblem, FieldProblems, StatusReflection};

/// Compiled paths of the status to collect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredStatus(Vec<Path>);

impl DeclaredStatus {
    /// Compiles the paths; `field` is the path of the rules. `None` if there are none.
    pub(crate) fn compile(
        rule: &StatusReflection,
        field: &str,
    ) -> Result<Option<Self>, Vec<CustomizationProblem>> {
        if rule.fields.is_empty() {
            return Ok(None);
        }
        let mut problems = FieldProblems::under(field);
        let mut paths = Vec::new();
        for (index, text) in rule.fields.iter().enumerate() {
            let name = format!("fields[{index}]");
            let Some(path) = problems.path(&name, text) else {
                continue;
            };
            if path.first_field() != Some("status") {
                problems.add(&name, "must begin with .status");
            }
            paths.push(path);
        }
        problems.into_result(|| Some(Some(Self(paths))))
    }

    /// Returns the selected part of the status; `None` if nothing is selected.
    pub(crate) fn reflect(&self, object: &Value) -> Option<Value> {
        let mut reflected = Value::Null;
        for path in &self.0 {
            path.copy(object, &mut reflected);
        }
        reflected.get_mut("status").map(Value::take)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selected_fields_are_collected() {
        let object = json!({"status": {
            "phase": "Running",
            "replicas": {"ready": 1, "old": 2},
            "conditions": [{"type": "Odd"}, {"type": "Ready", "status": "True"}],
        }});
        for (fields, expected) in [
            (
                json!([".status.phase", ".status.replicas.ready"]),
                Some(json!({"phase": "Running", "replicas": {"ready": 1}})),
            ),
            (
                json!([".status.conditions[?(@.type==\"Ready\")]"]),
                Some(json!({"conditions": [{"type": "Ready", "status": "True"}]})),
            ),
            (json!([".status"]), Some(object["status"].clone())),
            (json!([".status.absent"]), None),
        ] {
            let rule = serde_json::from_value(json!({ "fields": fields })).unwrap();
            let declared = DeclaredStatus::compile(&rule, "s").unwrap().unwrap();
            assert_eq!(declared.reflect(&object), expected, "{fields}");
        }
    }

    #[test]
    fn only_the_status_is_collected() {
        let rule = serde_json::from_value(json!({"fields": [".spec.a", ".status.b[", ".status"]})).unwrap();
        let problems = DeclaredStatus::compile(&rule, "s").unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "s.fields[0]: must begin with .status",
                "s.fields[1]: \".status.b[\" is not a JSONPath: expected \"]\" at column 11",
            ]
        );
        assert_eq!(
            DeclaredStatus::compile(&StatusReflection::default(), "s"),
            Ok(None)
        );
    }
}
