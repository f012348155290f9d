//! Targets of each kind, through which nothing is sent.

use kube::Client;
use serde_json::{Value, json};
use windlass_trust::injection::{CaBundlePlace, TargetKind};

use super::foreign::{self, version};
use crate::request::text;

/// A target that others create.
pub(super) struct ForeignTarget {
    pub(super) kind: &'static TargetKind,
    pub(super) object: Value,
}

/// Has a kind served that is none of the API server's own.
pub(super) async fn define(client: &Client, kind: &TargetKind) -> anyhow::Result<()> {
    if kind.group.is_empty() || kind.group.ends_with(".k8s.io") {
        return Ok(());
    }
    let crd = foreign::crd(&kind.api_version(), &kind.kind, &kind.plural, false);
    foreign::define(client, &crd).await
}

// === impl ForeignTarget ===

impl ForeignTarget {
    /// One with these annotations that calls a Service, by its namespace and name; from each of these entries, where the kind has
    /// a list of them.
    pub(super) fn of(
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
                entries_of(&object, list)
            }
            None => 1,
        };
        for entry in 0..count {
            let called = json!({"namespace": namespace, "name": service, "path": "/hook", "port": 443});
            put(&mut object, &format!("{}/service", holder(place, entry)), called);
        }
        complete(&mut object, namespace, service);
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

    /// Where the CA bundle of an entry is, or that of the object.
    pub(super) fn bundle(&self, entry: usize) -> String {
        let place = &self.kind.places[0];
        format!("{}/{}", holder(place, entry), place.field)
    }
}

fn entries_of(object: &Value, list: &str) -> usize {
    object.pointer(list).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Where a place of a kind is.
fn holder(place: &CaBundlePlace, entry: usize) -> String {
    let item = place.list.as_ref().map(|list| format!("{list}/{entry}"));
    format!("{}{}", item.unwrap_or_default(), place.holder)
}

/// Puts a value at a JSON pointer, and objects on the way there.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        };
    }
    *place = value;
}

/// Adds what the API server asks for in objects of its own kinds. Those of others are CRDs that take anything.
fn complete(object: &mut Value, namespace: &str, service: &str) {
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
