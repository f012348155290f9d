//! The state of a cluster, and comparison of two states.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use serde_json::Value;

use super::normal;
use crate::{
    dump::{self, ListedKind},
    request::text,
};

/// Collections that are not state: events, heartbeats, and a health check that is served as objects.
const LEFT_OUT: &[&str] = &["events", "leases", "componentstatuses"];

/// The maximum number of differences in a message.
const MOST_DIFFERENCES: usize = 30;

/// Every object of a cluster, normalised, by collection, namespace and name.
///
/// Removed or replaced by their kind: uids, resourceVersions, generations, timestamps, addresses, the
/// generated part of names, and the bytes of certificates and keys.
#[derive(Clone, Debug)]
pub struct Snapshot {
    objects: BTreeMap<String, Vec<Value>>,
    ending: Vec<String>,
}

impl Snapshot {
    /// Takes a snapshot of all namespaces except `without`.
    ///
    /// # Errors
    ///
    /// Fails if a collection cannot be listed.
    pub async fn take(client: &Client, without: &[&str]) -> anyhow::Result<Self> {
        let desired = |collection: &ListedKind| !LEFT_OUT.contains(&collection.resource.as_str());
        let mut objects = dump::objects(client, desired).await?;
        objects.retain(|(collection, object)| {
            let namespace = match collection.resource.as_str() {
                "namespaces" => text(object, "/metadata/name"),
                _ => text(object, "/metadata/namespace"),
            };
            !without.contains(&namespace)
        });
        Ok(Self::from_objects(&objects))
    }

    fn from_objects(objects: &[(ListedKind, Value)]) -> Self {
        let names = normal::generated_names(objects.iter().map(|(_, object)| object));
        let uids: BTreeSet<&str> = objects
            .iter()
            .map(|(_, object)| text(object, "/metadata/uid"))
            .collect();
        let mut ending = Vec::new();
        let mut normalised: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (collection, object) in objects {
            let original = object;
            let object = normal::normalised(original, &names);
            let place = format!(
                "{}/{} {}/{}",
                collection.group,
                collection.resource,
                text(&object, "/metadata/namespace"),
                text(&object, "/metadata/name")
            );
            if is_ending(original, &uids) {
                ending.push(place.clone());
            }
            normalised.entry(place).or_default().push(object);
        }
        for alike in normalised.values_mut() {
            alike.sort_by_cached_key(Value::to_string);
        }
        Self {
            objects: normalised,
            ending,
        }
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.values().map(Vec::len).sum()
    }

    /// Whether the snapshot is empty.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects that are being deleted.
    pub fn ending(&self) -> &[String] {
        &self.ending
    }

    /// Describes how `other` differs; empty if it does not.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let places: BTreeSet<&String> = self.objects.keys().chain(other.objects.keys()).collect();
        let mut differences = Vec::new();
        for place in places {
            let objects = |snapshot: &'_ Self| snapshot.objects.get(place).cloned().unwrap_or_default();
            let (expected, actual) = (objects(self), objects(other));
            if expected.len() != actual.len() {
                differences.push(format!(
                    "{place}: {} objects instead of {}",
                    actual.len(),
                    expected.len()
                ));
                continue;
            }
            for (expected, actual) in expected.iter().zip(&actual) {
                compare(place, expected, actual, &mut differences);
            }
        }
        differences.truncate(MOST_DIFFERENCES);
        differences
    }
}

/// Whether an object is being deleted, or will be garbage-collected because its owner is gone. A real cluster
/// needs up to half a minute to learn the owners of a new kind.
fn is_ending(object: &Value, uids: &BTreeSet<&str>) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let is_orphan = owners.is_some_and(|owners| {
        !owners.is_empty() && !owners.iter().any(|owner| uids.contains(text(owner, "/uid")))
    });
    is_orphan || !object["metadata"]["deletionTimestamp"].is_null()
}

/// Adds the innermost differences between two values.
fn compare(place: &str, expected: &Value, actual: &Value, differences: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let field =
                    |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                compare(&format!("{place}.{key}"), &field(old), &field(new), differences);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}[{index}]"), old, new, differences);
            }
        }
        _ if expected == actual => {}
        _ => differences.push(format!("{place}: {actual} instead of {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods() -> ListedKind {
        ListedKind {
            path: "/api/v1/pods".to_owned(),
            group: String::new(),
            resource: "pods".to_owned(),
        }
    }

    fn pod(suffix: &str, uid: &str, ready: bool) -> (ListedKind, Value) {
        let object = json!({
            "metadata": {"name": format!("web-{suffix}"), "generateName": "web-", "namespace": "a", "uid": uid},
            "status": {"ready": ready, "podIP": format!("10.0.0.{}", suffix.len()), "startTime": "2026-01-01T00:00:00Z"},
        });
        (pods(), object)
    }

    #[test]
    fn generated_values_make_no_difference() {
        let one = Snapshot::from_objects(&[pod("x", "1", true), pod("yy", "2", true)]);
        let other = Snapshot::from_objects(&[pod("zzz", "3", true), pod("w", "4", true)]);
        assert_eq!(one.differences(&other), Vec::<String>::new());
    }

    #[test]
    fn an_object_without_its_owner_is_ending() {
        let owned_by = |uid: &str| {
            let (collection, mut object) = pod("x", "1", true);
            object["metadata"]["ownerReferences"] = json!([{"uid": uid}]);
            [pod("y", "2", true), (collection, object)]
        };
        assert_eq!(
            Snapshot::from_objects(&owned_by("2")).ending(),
            Vec::<String>::new()
        );
        assert_eq!(Snapshot::from_objects(&owned_by("3")).ending(), ["/pods a/web-*"]);
    }

    #[test]
    fn a_left_over_object_and_a_changed_field_are_told() {
        let one = Snapshot::from_objects(&[pod("x", "1", true)]);
        let left_over = Snapshot::from_objects(&[pod("x", "1", true), pod("y", "2", true)]);
        assert_eq!(
            one.differences(&left_over),
            ["/pods a/web-*: 2 objects instead of 1"]
        );
        let changed = Snapshot::from_objects(&[pod("x", "1", false)]);
        assert_eq!(
            one.differences(&changed),
            ["/pods a/web-*.status.ready: false instead of true"]
        );
    }
}
