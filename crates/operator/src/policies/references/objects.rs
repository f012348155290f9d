//! Objects that policies refer to, from watches or the API server.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use policy::{DataReference, FetchedAnswer, ObjectSelection};
use serde_json::Value;
use windlass_cluster::{Cluster, Kind, kinds, telemetry::chain};
use windlass_object::object;

use super::watched_kinds::WatchedKinds;

/// Finds objects that policies refer to, in watches or with the API server.
pub(super) struct ReferredObjects {
    cluster: Cluster,
    kinds: Arc<WatchedKinds>,
    /// Recently read objects, as text: requests for pods of one owner tend to arrive together.
    read: Cache<DataReference, Arc<str>>,
}

/// How long a read object is reused.
const BELIEVED: Duration = Duration::from_secs(2);

/// The size limit of the cache, in bytes.
const READ_MEMORY: u64 = 16 << 20;

/// The size limit of one list, in bytes.
const LARGEST_LIST: usize = 8 << 20;

impl ReferredObjects {
    pub(super) fn new(cluster: Cluster, kinds: Arc<WatchedKinds>) -> Self {
        Self {
            cluster,
            kinds,
            read: Cache::builder()
                .weigher(|_, text: &Arc<str>| u32::try_from(text.len()).unwrap_or(u32::MAX))
                .max_capacity(READ_MEMORY)
                .time_to_live(BELIEVED)
                .build(),
        }
    }

    /// Returns the referenced object or objects. Only the API server decides that an object does not exist: a
    /// watch may lag.
    pub(super) async fn answer(&self, reference: &DataReference) -> FetchedAnswer {
        let Ok(wanted) = reference.objects() else {
            return FetchedAnswer::Failed("is not an object".to_owned());
        };
        let kind = Kind::named(wanted.api_version.to_owned(), wanted.kind.to_owned());
        let namespace = wanted.namespace;
        let seen = |found| check_namespace(found, namespace, wanted.is_confined);
        let answer = match wanted.which {
            ObjectSelection::Named(name) => match self.find_one(reference, &kind, namespace, name).await {
                Ok(Some(found)) => seen(found).map(FetchedAnswer::Found),
                Ok(None) => Ok(FetchedAnswer::NotFound),
                Err(problem) => Err(problem),
            },
            ObjectSelection::Labelled(selector) => {
                let found = self.list_matching(&kind, namespace, selector).await;
                let found: Result<Vec<_>, _> = found.and_then(|found| found.into_iter().map(seen).collect());
                found.map(|found| FetchedAnswer::Found(found.into()))
            }
        };
        answer.unwrap_or_else(FetchedAnswer::Failed)
    }

    async fn find_one(
        &self,
        reference: &DataReference,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let seen = self.kinds.synced(kind);
        if let Some(found) = seen.and_then(|seen| seen.find(namespace, name)) {
            return Ok(Some(found));
        }
        if let Some(text) = self.read.get(reference) {
            return Ok(serde_json::from_str(&text).ok());
        }
        let key = kind.object((!namespace.is_empty()).then_some(namespace), name);
        let found = self.cluster.read(&key).await.map_err(|error| chain(&error))?;
        let found = found.map(without_managed_fields);
        // Secrets are never cached.
        if let Some(found) = found.as_ref().filter(|_| *kind != kinds::SECRET) {
            self.read.insert(reference.clone(), found.to_string().into());
        }
        Ok(found)
    }

    async fn list_matching(
        &self,
        kind: &Kind,
        namespace: &str,
        selector: &Value,
    ) -> Result<Vec<Value>, String> {
        if let Some(seen) = self.kinds.synced(kind) {
            return Ok(seen.with_labels(namespace, selector));
        }
        let labels = label_query(selector)?;
        let namespace = (!namespace.is_empty()).then_some(namespace);
        let mut left = LARGEST_LIST;
        let mut is_too_large = false;
        let keep = |object: Value| {
            let object = without_managed_fields(object);
            let size = object.to_string().len();
            is_too_large |= size > left;
            left = left.saturating_sub(size);
            (!is_too_large).then_some(object)
        };
        let labels = (!labels.is_empty()).then_some(labels);
        let listed = self
            .cluster
            .list_as(kind, namespace, labels.as_deref(), keep)
            .await;
        let listed = listed.map_err(|error| chain(&error))?;
        if is_too_large {
            return Err(format!(
                "the selected objects have more than {LARGEST_LIST} bytes: refer to one object by name"
            ));
        }
        Ok(listed)
    }
}

/// Removes `metadata.managedFields`.
fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Checks that a namespaced policy refers to its own namespace only.
fn check_namespace(found: Value, namespace: &str, is_confined: bool) -> Result<Value, String> {
    let own = object::text(&found, "/metadata/namespace").unwrap_or_default();
    if is_confined && own != namespace {
        return Err("an OverridePolicy refers to objects of its own namespace only".to_owned());
    }
    Ok(found)
}

/// Converts a LabelSelector to a query parameter. Names and values are checked, so that they cannot add other
/// terms.
fn label_query(selector: &Value) -> Result<String, String> {
    let valid = |text: &str| {
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
        match text.chars().all(fits) {
            true => Ok(text.to_owned()),
            false => Err(format!("{text:?} is not valid in a label")),
        }
    };
    let mut terms = Vec::new();
    let equal = selector.get("matchLabels").and_then(Value::as_object);
    for (name, value) in equal.into_iter().flatten() {
        terms.push(format!(
            "{}={}",
            valid(name)?,
            valid(value.as_str().unwrap_or_default())?
        ));
    }
    for expression in object::items(selector, "/matchExpressions") {
        let key = valid(object::text(expression, "/key").unwrap_or_default())?;
        let values = object::items(expression, "/values").iter();
        let values: Result<Vec<_>, _> = values
            .map(|value| valid(value.as_str().unwrap_or_default()))
            .collect();
        let values = values?.join(",");
        terms.push(match object::text(expression, "/operator").unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key,
            "DoesNotExist" => format!("!{key}"),
            other => return Err(format!("{other:?} is not an operator of a label selector")),
        });
    }
    Ok(terms.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_selector_becomes_an_equivalent_query() {
        let selector = json!({
            "matchLabels": {"example.com/a": "b"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["d", "e"]}, {"key": "f", "operator": "NotIn", "values": ["g"]},
                {"key": "h", "operator": "Exists"}, {"key": "i", "operator": "DoesNotExist"},
            ],
        });
        let query = label_query(&selector).unwrap();
        assert_eq!(query, "example.com/a=b,c in (d,e),f notin (g),h,!i");
        for value in ["a,b", "a)", "a b", "a=b"] {
            assert!(
                label_query(&json!({"matchLabels": {"a": value}})).is_err(),
                "{value}"
            );
        }
        assert_eq!(label_query(&json!({})).unwrap(), "");
    }

    #[test]
    fn a_namespaced_policy_reads_its_own_namespace_only() {
        let node = json!({"kind": "Node", "metadata": {"name": "a"}});
        assert!(check_namespace(node.clone(), "n", true).is_err());
        assert!(check_namespace(node, "n", false).is_ok());
        let own = json!({"metadata": {"name": "a", "namespace": "n"}});
        assert!(check_namespace(own.clone(), "n", true).is_ok());
        assert!(check_namespace(own, "m", true).is_err());
    }
}
