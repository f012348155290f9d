//! Defaults of CRDs.

use serde_json::{Value, json};

use crate::webhook;

/// Sets the defaults of the real server.
pub fn default(crd: &mut Value) {
    if crd["spec"]["conversion"].is_null() {
        crd["spec"]["conversion"] = json!({"strategy": "None"});
    }
    let kind = crd["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let names = &mut crd["spec"]["names"];
    if names.is_object() {
        if names["singular"].as_str().unwrap_or_default().is_empty() {
            names["singular"] = json!(kind.to_lowercase());
        }
        if names["listKind"].as_str().unwrap_or_default().is_empty() {
            names["listKind"] = json!(format!("{kind}List"));
        }
    }
    webhook::default_client_config(crd.pointer_mut("/spec/conversion/webhook/clientConfig"));
}
