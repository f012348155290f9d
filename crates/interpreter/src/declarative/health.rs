//! Health by conditions and comparisons.

use std::cmp::Ordering;

use json_path::{Path, equal, order};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::object;

use crate::customization::{CustomizationProblem, FieldProblems, HealthInterpretation};

/// A condition of healthy objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct ExpectedCondition {
    /// Type of the condition, for example Ready.
    #[serde(rename = "type", default)]
    pub condition_type: String,
    /// Status of the condition; the default is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whether the condition must be current: its observedGeneration, or that of the status if the condition
    /// has none, equals the generation of the object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_generation: bool,
}

/// A comparison of the values that a path selects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["path", "operator"]))]
pub struct FieldComparison {
    /// A JSONPath. The path must select a value, and the comparison must be true for every selected value.
    #[serde(default)]
    pub path: String,
    /// The comparison operator.
    #[serde(default)]
    pub operator: ComparisonOperator,
    /// The value to compare with, if valuePath is absent or selects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub value: Option<Value>,
    /// A JSONPath of the value to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_path: Option<String>,
    /// The allowed values, for the operator In.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_values")]
    pub values: Vec<Value>,
}

/// How values are compared: numbers by value, strings lexically, others only for equality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonOperator {
    /// Equal.
    #[default]
    Equals,
    /// Not equal.
    NotEquals,
    /// Less than.
    LessThan,
    /// Less than or equal.
    LessOrEqual,
    /// Greater than.
    GreaterThan,
    /// Greater than or equal.
    GreaterOrEqual,
    /// Equal to one of several values.
    In,
    /// The path selects a value.
    Exists,
    /// The path selects no value.
    DoesNotExist,
}

/// Declared health rules with compiled paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredHealth {
    condition: Option<ExpectedCondition>,
    all: Vec<DeclaredComparison>,
    any: Vec<DeclaredComparison>,
}

#[derive(Clone, Debug, PartialEq)]
struct DeclaredComparison {
    path: Path,
    operator: ComparisonOperator,
    value: Option<Value>,
    value_path: Option<Path>,
    values: Vec<Value>,
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

fn any_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "x-kubernetes-preserve-unknown-fields": true } })
}

impl DeclaredHealth {
    /// Compiles the rules; `field` is their path. `None` if there are none.
    pub(crate) fn compile(
        rule: &HealthInterpretation,
        field: &str,
    ) -> Result<Option<Self>, Vec<CustomizationProblem>> {
        if rule.condition.is_none() && rule.all.is_empty() && rule.any.is_empty() {
            return Ok(None);
        }
        let mut problems = FieldProblems::under(field);
        if rule
            .condition
            .as_ref()
            .is_some_and(|condition| condition.condition_type.is_empty())
        {
            problems.add("condition.type", "must not be empty");
        }
        let mut comparisons = |name: &str, comparisons: &[FieldComparison]| {
            let mut compiled = Vec::new();
            for (index, comparison) in comparisons.iter().enumerate() {
                let field = format!("{field}.{name}[{index}]");
                match DeclaredComparison::compile(comparison, &field) {
                    Ok(comparison) => compiled.push(comparison),
                    Err(found) => problems.extend(found),
                }
            }
            compiled
        };
        let health = Self {
            condition: rule.condition.clone(),
            all: comparisons("all", &rule.all),
            any: comparisons("any", &rule.any),
        };
        problems.into_result(|| Some(Some(health)))
    }

    /// Reports whether an object is healthy.
    pub(crate) fn is_healthy(&self, object: &Value) -> bool {
        let holds = |comparison: &DeclaredComparison| comparison.holds(object);
        self.condition
            .as_ref()
            .is_none_or(|condition| condition.is_met(object))
            && self.all.iter().all(holds)
            && (self.any.is_empty() || self.any.iter().any(holds))
    }
}

impl ExpectedCondition {
    fn is_met(&self, object: &Value) -> bool {
        let Some(condition) = object::condition(object, &self.condition_type) else {
            return false;
        };
        let status = self.status.as_deref().unwrap_or("True");
        if object::text(condition, "/status") != Some(status) {
            return false;
        }
        let observed = || {
            let of_status = || object.pointer("/status/observedGeneration");
            condition.get("observedGeneration").or_else(of_status)?.as_i64()
        };
        let generation = || object.pointer("/metadata/generation")?.as_i64();
        !self.observed_generation || observed().is_some() && observed() == generation()
    }
}

impl DeclaredComparison {
    fn compile(comparison: &FieldComparison, field: &str) -> Result<Self, Vec<CustomizationProblem>> {
        use ComparisonOperator::{DoesNotExist, Exists, In};

        let mut problems = FieldProblems::under(field);
        let path = problems.path("path", &comparison.path);
        let value_path = problems.optional_path("valuePath", comparison.value_path.as_deref());
        let has_value = comparison.value.is_some() || comparison.value_path.is_some();
        let has_values = !comparison.values.is_empty();
        match comparison.operator {
            In if !has_values => problems.add("values", "must not be empty for In"),
            In if has_value => problems.add("value", "must not be given for In"),
            Exists | DoesNotExist if has_value || has_values => {
                let message = format!("must not be given for {:?}", comparison.operator);
                problems.add(if has_values { "values" } else { "value" }, message);
            }
            In | Exists | DoesNotExist => {}
            operator if has_values => problems.add("values", format!("must not be given for {operator:?}")),
            operator if !has_value => {
                problems.add("value", format!("{operator:?} needs a value or a valuePath"));
            }
            _ => {}
        }
        problems.into_result(|| {
            Some(Self {
                path: path?,
                operator: comparison.operator,
                value: comparison.value.clone(),
                value_path,
                values: comparison.values.clone(),
            })
        })
    }

    fn holds(&self, object: &Value) -> bool {
        let mut found = self.path.find(object);
        found.retain(|found| !found.is_null());
        if self.operator == ComparisonOperator::DoesNotExist {
            return found.is_empty();
        }
        let at_path = self.value_path.as_ref().and_then(|path| path.first(object));
        let expected = at_path.filter(|value| !value.is_null()).or(self.value.as_ref());
        !found.is_empty() && found.into_iter().all(|value| self.compares(value, expected))
    }

    fn compares(&self, value: &Value, expected: Option<&Value>) -> bool {
        let orders = |as_asked: fn(Ordering) -> bool| {
            expected
                .and_then(|expected| order(value, expected))
                .is_some_and(as_asked)
        };
        match self.operator {
            ComparisonOperator::Equals => expected.is_some_and(|expected| equal(value, expected)),
            ComparisonOperator::NotEquals => expected.is_some_and(|expected| !equal(value, expected)),
            ComparisonOperator::LessThan => orders(Ordering::is_lt),
            ComparisonOperator::LessOrEqual => orders(Ordering::is_le),
            ComparisonOperator::GreaterThan => orders(Ordering::is_gt),
            ComparisonOperator::GreaterOrEqual => orders(Ordering::is_ge),
            ComparisonOperator::In => self.values.iter().any(|expected| equal(value, expected)),
            ComparisonOperator::Exists => true,
            ComparisonOperator::DoesNotExist => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_healthy(rule: Value, object: &Value) -> bool {
        let rule: HealthInterpretation = serde_json::from_value(rule).unwrap();
        DeclaredHealth::compile(&rule, "h")
            .unwrap()
            .unwrap()
            .is_healthy(object)
    }

    #[test]
    fn a_condition_needs_its_status_and_generation() {
        let object = |status: &str, of_condition: Value, of_status: Value| {
            json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": of_status, "conditions": [
                    {"type": "Ready", "status": status, "observedGeneration": of_condition},
                ]},
            })
        };
        let mut old = object("True", json!(null), json!(2));
        old["status"]["conditions"][0]
            .as_object_mut()
            .unwrap()
            .shift_remove("observedGeneration");
        let ready = json!({"condition": {"type": "Ready"}});
        let observed = json!({"condition": {"type": "Ready", "observedGeneration": true}});
        let absent = json!({"condition": {"type": "Failed", "status": "False"}});
        let is_false = json!({"condition": {"type": "Ready", "status": "False"}});
        for (rule, object, expected) in [
            (&ready, &object("True", json!(1), json!(1)), true),
            (&ready, &object("False", json!(2), json!(2)), false),
            (&is_false, &object("False", json!(2), json!(2)), true),
            (&absent, &object("True", json!(2), json!(2)), false),
            (&ready, &json!({}), false),
            (&observed, &object("True", json!(2), json!(1)), true),
            (&observed, &object("True", json!(1), json!(2)), false),
            (&observed, &old, true),
            (
                &observed,
                &json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
                false,
            ),
        ] {
            assert_eq!(is_healthy(rule.clone(), object), expected, "{rule} {object}");
        }
    }

    #[test]
    fn a_comparison_must_be_true_for_every_selected_value() {
        let object = json!({
            "spec": {"replicas": 3},
            "status": {"ready": 3, "phase": "Running", "list": [1, 2], "none": null},
        });
        for (comparison, expected) in [
            (
                json!({"path": ".status.ready", "operator": "Equals", "value": 3}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "Equals", "valuePath": ".spec.replicas"}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "Equals", "valuePath": ".spec.none"}),
                false,
            ),
            (
                json!({"path": ".status.ready", "operator": "Equals", "valuePath": ".spec.none", "value": 3.0}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "Equals", "valuePath": ".spec.replicas", "value": 9}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "Equals", "value": "3"}),
                false,
            ),
            (
                json!({"path": ".status.ready", "operator": "NotEquals", "value": 2}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "NotEquals", "value": 3}),
                false,
            ),
            (
                json!({"path": ".status.absent", "operator": "NotEquals", "value": 3}),
                false,
            ),
            (
                json!({"path": ".status.ready", "operator": "LessThan", "value": 4}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "LessOrEqual", "value": 3}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "LessThan", "value": 3}),
                false,
            ),
            (
                json!({"path": ".status.ready", "operator": "GreaterThan", "value": 3}),
                false,
            ),
            (
                json!({"path": ".status.ready", "operator": "GreaterOrEqual", "value": 3}),
                true,
            ),
            (
                json!({"path": ".status.ready", "operator": "GreaterThan", "value": "2"}),
                false,
            ),
            (
                json!({"path": ".status.list[*]", "operator": "LessThan", "value": 3}),
                true,
            ),
            (
                json!({"path": ".status.list[*]", "operator": "Equals", "value": 1}),
                false,
            ),
            (
                json!({"path": ".status.phase", "operator": "In", "values": ["Done", "Running"]}),
                true,
            ),
            (
                json!({"path": ".status.phase", "operator": "In", "values": ["Done"]}),
                false,
            ),
            (json!({"path": ".status.phase", "operator": "Exists"}), true),
            (json!({"path": ".status.none", "operator": "Exists"}), false),
            (json!({"path": ".status.none", "operator": "DoesNotExist"}), true),
            (
                json!({"path": ".status.phase", "operator": "DoesNotExist"}),
                false,
            ),
        ] {
            assert_eq!(
                is_healthy(json!({"all": [comparison]}), &object),
                expected,
                "{comparison}"
            );
        }
    }

    #[test]
    fn all_and_any_are_combined() {
        let compare = |value: i64| json!({"path": ".n", "operator": "Equals", "value": value});
        let object = json!({"n": 1});
        for (rule, expected) in [
            (json!({"all": [compare(1), compare(1)]}), true),
            (json!({"all": [compare(1), compare(2)]}), false),
            (json!({"any": [compare(2), compare(1)]}), true),
            (json!({"any": [compare(2)]}), false),
            (json!({"all": [compare(1)], "any": [compare(2)]}), false),
            (
                json!({"all": [compare(1)], "condition": {"type": "Ready"}}),
                false,
            ),
        ] {
            assert_eq!(is_healthy(rule.clone(), &object), expected, "{rule}");
        }
    }

    #[test]
    fn invalid_comparisons_are_reported() {
        let rule = json!({
            "condition": {"status": "True"},
            "all": [
                {"path": ".a[", "operator": "Equals", "value": 1, "valuePath": "]"},
                {"path": ".a", "operator": "In"},
                {"path": ".a", "operator": "In", "values": [1], "value": 2},
                {"path": ".a", "operator": "Exists", "value": 2},
            ],
            "any": [
                {"path": ".a", "operator": "LessThan"},
                {"path": ".a", "operator": "Equals", "values": [1], "value": 1},
            ],
        });
        let rule: HealthInterpretation = serde_json::from_value(rule).unwrap();
        let problems = DeclaredHealth::compile(&rule, "h").unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "h.condition.type: must not be empty",
                "h.all[0].path: \".a[\" is not a JSONPath: expected \"]\" at column 4",
                "h.all[0].valuePath: \"]\" is not a JSONPath: unexpected ']' at column 1",
                "h.all[1].values: must not be empty for In",
                "h.all[2].value: must not be given for In",
                "h.all[3].value: must not be given for Exists",
                "h.any[0].value: LessThan needs a value or a valuePath",
                "h.any[1].values: must not be given for Equals",
            ]
        );
        assert_eq!(
            DeclaredHealth::compile(&HealthInterpretation::default(), "h"),
            Ok(None)
        );
    }
}
