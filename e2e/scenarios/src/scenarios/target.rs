//! Targets of each kind that receive no requests.

use kube::Client;
use serde_json::{Value, json};
use windlass_trust::injection::{CaBundlePlace, TargetKind};

use super::foreign::{self, version};
use crate::request::text;

/// A target that another client creates.
pub(super) struct ForeignTarget {
    pub(super) kind: &'static TargetKind,
    pub(super) object: Value,
}

/// Creates the CRD of a kind that the API server does not serve itself.
pub(super) async fn define(client: &Client, kind: &TargetKind) -> anyhow::Result<()> {
    if kind.group.is_empty() || kind.group.ends_with(".k8s.io") {
        return Ok(());
    }
    let crd = foreign::crd(&kind.api_version(), &kind.kind, &kind.plural, false);
    foreign::define(client, &crd).await
}

impl ForeignTarget {
    /// Returns a target with these annotations that calls the Service with this namespace and name, once for
    /// each entry if the kind has a list.
    pub(super) fn new(
        kind: &'static TargetKind,
        annotations: &Value,
        (namespace, service): (&str, &str),
        entries: &[&str],
    ) -> Self {
        let mut object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": {"name": "platform", "annotations": annotations},
        });
        let place = &kind.places[0];
        let count = match &place.list {
            Some(list) => {
                let entries = entries.iter().map(|name| json!({ "name": name }));
                object[&list[1..]] = entries.collect();
                count_entries(&object, list)
            }
            None => 1,
        };
        for entry in 0..count {
            let called = json!({"namespace": namespace, "name": service, "path": "/hook", "port": 443});
            set_value(
                &mut object,
                &format!("{}/service", holder_pointer(place, entry)),
                called,
            );
        }
        add_required_fields(&mut object, namespace, service);
        Self { kind, object }
    }

    pub(super) fn collection(&self) -> String {
        match &*self.kind.group {
            "" => format!(
                "/api/{}/namespaces/{}/{}",
                self.kind.version,
                text(&self.object, "/metadata/namespace"),
                self.kind.plural
            ),
            _ => format!("/apis/{}/{}", self.kind.api_version(), self.kind.plural),
        }
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection(), text(&self.object, "/metadata/name"))
    }

    /// Returns the JSON pointer to the CA bundle of an entry, or of the object.
    pub(super) fn bundle_pointer(&self, entry: usize) -> String {
        let place = &self.kind.places[0];
        format!("{}/{}", holder_pointer(place, entry), place.field)
    }
}

fn count_entries(object: &Value, list: &str) -> usize {
    object.pointer(list).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Returns the JSON pointer to the object that contains the CA bundle.
fn holder_pointer(place: &CaBundlePlace, entry: usize) -> String {
    let item = place.list.as_ref().map(|list| format!("{list}/{entry}"));
    format!("{}{}", item.unwrap_or_default(), place.holder)
}

/// Sets the value at a JSON pointer, and creates missing parents.
fn set_value(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        };
    }
    *place = value;
}

/// Adds the required fields of built-in kinds. The CRDs of other kinds accept any fields.
fn add_required_fields(object: &mut Value, namespace: &str, service: &str) {
    match text(object, "/kind") {
        "CustomResourceDefinition" => {
            object["metadata"]["name"] = json!("gears.platform.example.com");
            let spec = &mut object["spec"];
            spec["group"] = json!("platform.example.com");
            spec["scope"] = json!("Cluster");
            spec["names"] =
                json!({"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"});
            spec["versions"] = json!([version("v1", true), version("v1beta1", false)]);
            spec["conversion"]["strategy"] = json!("Webhook");
            spec["conversion"]["webhook"]["conversionReviewVersions"] = json!(["v1"]);
        }
        "APIService" => {
            object["metadata"]["name"] = json!("v1.aggregated.example.com");
            let service = json!({"namespace": namespace, "name": service, "port": 443});
            object["spec"] = json!({
                "group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 100,
                "versionPriority": 100, "service": service,
            });
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            let webhooks = object["webhooks"].as_array_mut();
            for webhook in webhooks.into_iter().flatten() {
                webhook["rules"] = json!([{
                    "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothings"],
                    "operations": ["CREATE"],
                }]);
                webhook["sideEffects"] = json!("None");
                webhook["admissionReviewVersions"] = json!(["v1"]);
            }
        }
        "ConfigMap" => {
            object["metadata"]["namespace"] = namespace.into();
            object["data"] = json!({"other": "1"});
        }
        _ => {}
    }
}
