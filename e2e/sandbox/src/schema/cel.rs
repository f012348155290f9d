//! `x-kubernetes-validations`.

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::field::{Fault, FieldError};

/// The compiled rules of a schema.
pub(super) struct Rules {
    compiled: Option<CompiledSchema>,
}

impl Rules {
    pub(super) fn compile(schema: &Value) -> Self {
        Self { compiled: has_rules(schema).then(|| compile_schema(schema)) }
    }

    /// The rules that an object breaks.
    pub(super) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let Some(compiled) = &self.compiled else { return Vec::new() };
        let Err(errors) = Validator::new().validate_compiled(compiled, object, old) else { return Vec::new() };
        errors
            .into_vec()
            .into_iter()
            .map(|error| {
                let fault = match error.reason.as_deref() {
                    Some("FieldValueForbidden") => Fault::Forbidden,
                    Some("FieldValueRequired") => Fault::Required,
                    Some("FieldValueDuplicate") => Fault::Duplicate(at(object, &error.field_path)),
                    _ => Fault::Invalid(shown(at(object, &error.field_path))),
                };
                FieldError::new(error.field_path.clone(), fault, error.message.clone())
            })
            .collect()
    }
}

/// The rules that do not compile: the path of the rule, the rule, what is wrong.
pub(super) fn problems(schema: &Value) -> Vec<(String, Value, String)> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut Vec<(String, Value, String)>) {
    for (index, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
        // One rule at a time, so that the one which fails is known.
        let mut single = schema.clone();
        single["x-kubernetes-validations"] = Value::Array(vec![rule.clone()]);
        if let Some(fields) = single.as_object_mut() {
            fields.remove("properties");
            fields.remove("items");
            fields.remove("additionalProperties");
        }
        let compiled = compile_schema(&single);
        if let Some(error) = compiled.compilation_errors().first() {
            found.push((
                format!("{path}.x-kubernetes-validations[{index}].rule"),
                rule["rule"].clone(),
                error.to_string(),
            ));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(property, &format!("{path}.properties[{name}]"), found);
    }
    for nested in ["items", "additionalProperties"] {
        if schema[nested].is_object() {
            collect(&schema[nested], &format!("{path}.{nested}"), found);
        }
    }
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

/// The value at a path such as `spec.a`; null when there is none.
fn at(object: &Value, path: &str) -> Value {
    let pointer: String = path.split('.').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect();
    object.pointer(&pointer).cloned().unwrap_or_default()
}

/// Objects and lists are named by their type, as the real server does.
fn shown(value: Value) -> Value {
    match value {
        Value::Object(_) => Value::from("object"),
        Value::Array(_) => Value::from("array"),
        other => other,
    }
}
