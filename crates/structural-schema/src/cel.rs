//! `x-kubernetes-validations`.

use std::sync::LazyLock;

use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use regex::Regex;
use serde_json::{Value, json};

use crate::field::{FieldError, Violation};

/// The compiled rules of a schema.
pub(super) struct Rules {
    compiled: Option<CompiledSchema>,
}

/// A rule that an object violates.
pub(super) struct BrokenRule {
    pub(super) error: FieldError,
    /// `false`: the rule could not be evaluated.
    pub(super) decided: bool,
}

impl Rules {
    pub(super) fn compile(schema: &Value) -> Self {
        Self {
            compiled: has_rules(schema).then(|| compile_schema(schema)),
        }
    }

    /// Returns the rules that an object violates.
    pub(super) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<BrokenRule> {
        let Some(compiled) = &self.compiled else {
            return Vec::new();
        };
        let Err(errors) = Validator::new().validate_compiled(compiled, object, old) else {
            return Vec::new();
        };
        errors
            .into_vec()
            .into_iter()
            .map(|error| {
                let fault = match error.reason.as_deref() {
                    Some("FieldValueForbidden") => Violation::Forbidden,
                    Some("FieldValueRequired") => Violation::Required,
                    Some("FieldValueDuplicate") => Violation::Duplicate(at(object, &error.field_path)),
                    _ => Violation::Invalid(shown(at(object, &error.field_path))),
                };
                BrokenRule {
                    error: FieldError::new(error.field_path.clone(), fault, error.message.clone()),
                    decided: matches!(
                        error.kind,
                        ErrorKind::ValidationFailure | ErrorKind::EvaluationError
                    ),
                }
            })
            .collect()
    }
}

/// Returns the problems of the rules in a schema at `field`.
pub(super) fn problems(schema: &Value, field: &str) -> Vec<FieldError> {
    let mut found = Vec::new();
    collect(schema, field, &mut found);
    found
}

fn collect(schema: &Value, field: &str, found: &mut Vec<FieldError>) {
    for (index, rule) in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let field = format!("{field}.x-kubernetes-validations[{index}]");
        if let Some(problem) = problem(schema, rule) {
            let text = |name: &str| rule[name].as_str().unwrap_or_default();
            let shown = json!({
                "Rule": text("rule"), "Message": text("message"), "MessageExpression": text("messageExpression"),
                "Reason": rule["reason"], "FieldPath": text("fieldPath"), "OptionalOldSelf": rule["optionalOldSelf"],
            });
            found.push(FieldError::new(
                format!("{field}.rule"),
                Violation::Invalid(shown),
                problem,
            ));
        }
        // The length of a `string()` result is unknown, so every such expression exceeds the budget.
        if rule["messageExpression"]
            .as_str()
            .is_some_and(|expression| expression.contains("string("))
        {
            let detail = "estimated messageExpression cost exceeds budget by factor of more than 100x (try simplifying \
                          the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings \
                          are declared)";
            found.push(FieldError::new(
                format!("{field}.messageExpression"),
                Violation::Forbidden,
                detail,
            ));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(property, &format!("{field}.properties[{name}]"), found);
    }
    for nested in ["items", "additionalProperties"] {
        if schema[nested].is_object() {
            collect(&schema[nested], &format!("{field}.{nested}"), found);
        }
    }
}

/// Returns why a rule does not compile.
fn problem(schema: &Value, rule: &Value) -> Option<String> {
    // Compiles one rule at a time to find out which one fails.
    let mut single = schema.clone();
    single["x-kubernetes-validations"] = Value::Array(vec![rule.clone()]);
    if let Some(fields) = single.as_object_mut() {
        fields.remove("properties");
        fields.remove("items");
        fields.remove("additionalProperties");
    }
    if let Some(error) = compile_schema(&single).compilation_errors().first() {
        return Some(error.to_string());
    }
    undeclared(schema, rule["rule"].as_str().unwrap_or_default())
}

/// Returns the error for a field of `self` that a rule names and the schema lacks: the library does not check
/// types.
fn undeclared(schema: &Value, rule: &str) -> Option<String> {
    #[expect(
        clippy::unwrap_used,
        reason = "the pattern is a constant that a test compiles"
    )]
    static CHAIN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b(?:self|oldSelf)((?:\.[A-Za-z_]\w*\b)+)(\()?").unwrap());
    for found in CHAIN.captures_iter(rule) {
        let chain = found.get(1)?;
        let mut place = schema;
        let mut offset = chain.start();
        let names: Vec<&str> = chain.as_str().split('.').skip(1).collect();
        // The last name before a parenthesis is a function.
        let fields = names.len() - usize::from(found.get(2).is_some());
        for name in &names[..fields] {
            let open =
                place["x-kubernetes-preserve-unknown-fields"] == true || !place["properties"].is_object();
            if open || place["x-kubernetes-embedded-resource"] == true {
                break;
            }
            place = match place["properties"].get(name) {
                Some(declared) => declared,
                None if matches!(*name, "apiVersion" | "kind" | "metadata") => break,
                None => {
                    let dots = ".".repeat(offset);
                    return Some(format!(
                        "compilation failed: ERROR: <input>:1:{}: undefined field '{name}'\n | {rule}\n | {dots}^",
                        offset + 1
                    ));
                }
            };
            offset += name.len() + 1;
        }
    }
    None
}

fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.contains_key("x-kubernetes-validations") || fields.values().any(has_rules)
        }
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// Returns the value at a path such as `spec.a[0].b`, or null.
fn at(object: &Value, path: &str) -> Value {
    let pointer: String = path
        .split(['.', '[', ']'])
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{part}"))
        .collect();
    object.pointer(&pointer).cloned().unwrap_or_default()
}

/// Shows objects and lists by their type, as kube-apiserver does.
fn shown(value: Value) -> Value {
    match value {
        Value::Object(_) => Value::from("object"),
        Value::Array(_) => Value::from("array"),
        other => other,
    }
}
