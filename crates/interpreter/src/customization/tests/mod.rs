mod admission;
#[cfg(feature = "lua")]
mod config;
mod crds;
mod overruled;
mod properties;
#[cfg(feature = "lua")]
mod scripts;
mod selection;

use serde_json::{Value, json};

use super::{CustomizationProblem, INTERPRETATION_API_VERSION, KARMADA_API_VERSION};

/// A ResourceInterpretation.
fn interpretation(name: &str, targets: Value, mode: &str, customizations: Value) -> Value {
    json!({
        "apiVersion": INTERPRETATION_API_VERSION, "kind": "ResourceInterpretation",
        "metadata": {"name": name},
        "spec": {"targets": targets, "mode": mode, "customizations": customizations},
    })
}

/// A ResourceInterpreterCustomization.
fn customization(name: &str, api_version: &str, kind: &str, customizations: Value) -> Value {
    json!({
        "apiVersion": KARMADA_API_VERSION, "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": name},
        "spec": {"target": {"apiVersion": api_version, "kind": kind}, "customizations": customizations},
    })
}

fn messages(problems: Vec<CustomizationProblem>) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
