//! Tests of each rule and scope, and of robustness against any input.

mod crds;
mod keywords;
mod objects;
mod properties;

use serde_json::{Value, json};
use windlass_object::yaml;

use super::{
    Finding, Policy,
    comparison::{Crds, compare},
};

/// Returns a CRD with one version `v1`, whose schema is `schema` in YAML.
fn crd(schema: &str) -> Value {
    let schema = document(schema);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]
        }
    })
}

fn document(text: &str) -> Value {
    let mut documents = yaml::documents(text.as_bytes()).unwrap();
    assert!(documents.len() < 2, "{text}");
    documents.pop().unwrap_or(Value::Null)
}

fn strict() -> Policy {
    Policy::default()
}

/// Returns the findings as printed.
fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

fn compared(old: &Value, new: &Value) -> Vec<String> {
    lines(&compare("widgets.example.com", old, new, &strict()))
}
