//! Booleans of YAML 1.1, which OLM accepts: `yes`, `on` and the like mean true, but only where the API has a
//! boolean. Elsewhere they are strings, as in YAML 1.2: the value of a label, or a field named `y`.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use windlass_object::object;

use super::model::Bundle;

/// The maximum number per object: each costs a pass over the object.
const MOST: usize = 64;

/// Replaces strings by booleans where the API has booleans.
pub(super) fn read_booleans(bundle: &mut Bundle) {
    let modes = bundle.csv.object.pointer_mut("/spec/installModes");
    for mode in modes.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(supported) = mode.get_mut("supported") {
            read_boolean(supported);
        }
    }
    let deployments = object::items(&bundle.csv.object, "/spec/install/spec/deployments").len();
    for index in 0..deployments {
        let pointer = format!("/spec/install/spec/deployments/{index}/spec");
        if let Some(spec) = bundle.csv.object.pointer_mut(&pointer) {
            read_all::<DeploymentSpec>(spec);
        }
    }
    for crd in &mut bundle.crds {
        if let Some(spec) = crd.object.get_mut("spec") {
            read_all::<CustomResourceDefinitionSpec>(spec);
        }
    }
}

/// Decodes `value` as `T` repeatedly, and corrects the boolean at which each attempt fails.
fn read_all<T: DeserializeOwned>(value: &mut Value) {
    for _ in 0..MOST {
        let Err(error) = serde_path_to_error::deserialize::<_, T>(&*value) else {
            return;
        };
        let is_boolean = error.inner().to_string().ends_with("expected a boolean");
        let Some(place) = value_at(value, error.path()).filter(|_| is_boolean) else {
            return;
        };
        if !read_boolean(place) {
            return;
        }
    }
}

fn value_at<'a>(value: &'a mut Value, path: &Path) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get_mut(index),
        Segment::Map { key } | Segment::Enum { variant: key } => value.get_mut(key),
        Segment::Unknown => None,
    })
}

/// Converts a YAML 1.1 boolean in place; returns false if the value is not one (`resolve.go` of `go-yaml`
/// version 2).
fn read_boolean(value: &mut Value) -> bool {
    let boolean = match value.as_str() {
        Some("y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON") => true,
        Some("n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF") => false,
        _ => return false,
    };
    *value = boolean.into();
    true
}
