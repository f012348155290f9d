//! Obstacles to the removal of a BundleDeployment. The removal checks them before it deletes anything. The
//! guard and `windlass uninstall` check them before the deletion, which cannot be undone.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::DeletionPolicy;
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_crd::{
    crd_release::can_serve_stored_only, is_converting, stage::may_stop_converting, storage_version,
};
use windlass_object::{ObjectKey, names, object};

use crate::install::traffic::CalledPath;

/// Returns the kind of a CRD, in its storage version.
pub(crate) fn stored_kind(crd: &Value) -> Kind {
    Kind::from_crd(crd, storage_version(crd).unwrap_or_default())
}

/// Reports whether objects of a CRD are stored. Lists them in the storage version, which needs no conversion.
///
/// # Errors
///
/// If the API server cannot list them.
pub async fn has_objects(cluster: &Cluster, crd: &Value) -> Result<bool, RequestError> {
    match cluster.find_any(&stored_kind(crd)).await {
        // The storage version is not served, so objects cannot be listed. Assume that there are some.
        Err(RequestError::UnknownKind { .. }) => Ok(true),
        found => Ok(found?.is_some()),
    }
}

/// Returns the names of `crds` whose conversion cannot be removed under `policy` because of stored objects.
/// There are none under [`DeletionPolicy::KeepStoredVersion`], which rewrites the objects first.
///
/// # Errors
///
/// If the API server cannot list objects.
pub async fn conversions_in_use<'a>(
    cluster: &Cluster,
    policy: DeletionPolicy,
    crds: impl IntoIterator<Item = &'a Value>,
) -> Result<Vec<&'a str>, RequestError> {
    let mut in_use = Vec::new();
    if policy != DeletionPolicy::KeepCRDs {
        return Ok(in_use);
    }
    for crd in crds {
        if is_converting(crd)
            && !can_remove_conversion(crd, policy, true)
            && has_objects(cluster, crd).await?
        {
            in_use.extend(object::text(crd, "/metadata/name"));
        }
    }
    Ok(in_use)
}

/// Reports whether the conversion of a CRD that is kept can be removed.
pub(crate) fn can_remove_conversion(crd: &Value, policy: DeletionPolicy, has_objects: bool) -> bool {
    match policy {
        DeletionPolicy::KeepStoredVersion => can_serve_stored_only(crd, has_objects),
        DeletionPolicy::KeepCRDs | DeletionPolicy::DeleteCRDs => may_stop_converting(crd, has_objects),
    }
}

/// Returns the calls that would fail: `callers` outside of the bundle that call a Service for which
/// `is_removed` holds and depend on the response. Each entry names caller and Service.
pub fn external_calls(
    callers: impl IntoIterator<Item = impl AsRef<Value>>,
    is_ours: impl Fn(&Value) -> bool,
    is_removed: impl Fn(&ObjectKey) -> bool,
) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for caller in callers {
        let caller = caller.as_ref();
        let Some(key) = ObjectKey::from_object(caller).filter(|_| !is_probe(caller) && !is_ours(caller))
        else {
            continue;
        };
        for CalledPath { port, .. } in CalledPath::needed_by(caller) {
            let service = kinds::SERVICE.object(Some(&port.namespace), &port.service);
            if is_removed(&service) {
                calls.insert(format!("{key} calls {service}"));
            }
        }
    }
    calls
}

/// Reports whether a webhook configuration only probes servers, so that no other request depends on it.
pub fn is_probe(caller: &Value) -> bool {
    object::label(caller, names::PROBE).is_some()
}

/// Returns the cluster-scoped owners of an object, with which the garbage collector deletes it. A
/// cluster-scoped object has no others.
pub fn cluster_scoped_owners(object: &Value) -> impl Iterator<Item = ObjectKey> {
    let owners = object::items(object, "/metadata/ownerReferences");
    owners.iter().filter_map(|owner| {
        let text = |field| object::text(owner, field);
        let kind = Kind::named(text("/apiVersion")?.to_owned(), text("/kind")?.to_owned());
        Some(kind.object(None, text("/name")?))
    })
}

/// Returns the deletion policy of a BundleDeployment, or the default if it is missing or unknown.
pub fn deletion_policy(deployment: &Value) -> DeletionPolicy {
    let policy = deployment.pointer("/spec/deletionPolicy").cloned();
    policy
        .and_then(|policy| serde_json::from_value(policy).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::{Client, client::Body};
    use serde_json::json;
    use std::{sync::Arc, time::Duration};
    use tower::{BoxError, service_fn};

    use super::*;

    /// An API server with this number of widgets.
    fn cluster(objects: usize) -> Cluster {
        let service = service_fn(move |request: Request<Body>| async move {
            let kind = json!({"name": "widgets", "kind": "Widget", "namespaced": true});
            let body = if request.uri().path() == "/apis/example.com/v1" {
                json!({"resources": [kind]})
            } else {
                json!({"kind": "WidgetList", "metadata": {}, "items": vec![json!({"metadata": {"name": "a"}}); objects]})
            };
            Ok::<_, BoxError>(Response::new(Body::from(body.to_string().into_bytes())))
        });
        Cluster::new(Client::new(service, "default"), Duration::from_secs(10))
    }

    fn crd(versions: &[(&str, bool, bool)]) -> Value {
        let versions: Vec<_> = versions
            .iter()
            .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
            .collect();
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "names": {"kind": "Widget"}, "versions": versions,
                "conversion": {"strategy": "Webhook"},
            },
            "status": {"storedVersions": ["v1"]},
        })
    }

    #[tokio::test]
    async fn stored_objects_keep_a_conversion_in_use_unless_they_can_be_rewritten() {
        let both = crd(&[("v1", true, true), ("v2", true, false)]);
        let one = crd(&[("v1", true, true), ("v2", false, false)]);
        let policies = [
            DeletionPolicy::KeepCRDs,
            DeletionPolicy::KeepStoredVersion,
            DeletionPolicy::DeleteCRDs,
        ];
        for (policy, expected) in policies.into_iter().zip([1, 0, 0]) {
            let in_use = conversions_in_use(&cluster(1), policy, [&both, &one]).await;
            assert_eq!(in_use.unwrap().len(), expected, "{policy:?}");
            let none = conversions_in_use(&cluster(0), policy, [&both, &one]).await;
            assert_eq!(none.unwrap().len(), 0, "{policy:?}");
        }
    }

    #[test]
    fn a_missing_or_unknown_policy_means_the_default() {
        for (spec, expected) in [
            (json!({}), DeletionPolicy::KeepCRDs),
            (
                json!({"deletionPolicy": "DeleteCRDs"}),
                DeletionPolicy::DeleteCRDs,
            ),
            (
                json!({"deletionPolicy": "KeepStoredVersion"}),
                DeletionPolicy::KeepStoredVersion,
            ),
            (
                json!({"deletionPolicy": "OfALaterRelease"}),
                DeletionPolicy::KeepCRDs,
            ),
        ] {
            assert_eq!(deletion_policy(&json!({ "spec": spec })), expected);
        }
    }
    #[test]
    fn callers_that_depend_on_a_removed_service_are_listed() {
        let webhook = |service: &str, policy: Value| json!({"name": service, "failurePolicy": policy, "clientConfig": {"service": {"namespace": "n", "name": service}}});
        let configuration = |name: &str, webhooks: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": name}, "webhooks": webhooks,
            })
        };
        let callers = [
            configuration("ours", json!([webhook("a", json!("Fail"))])),
            configuration(
                "theirs",
                json!([
                    webhook("a", Value::Null),
                    webhook("b", json!("Ignore")),
                    webhook("c", json!("Fail"))
                ]),
            ),
        ]
        .map(Arc::new);
        let is_ours = |caller: &Value| object::text(caller, "/metadata/name") == Some("ours");
        let calls = external_calls(callers, is_ours, |service| service.name != "c");
        let expected = "ValidatingWebhookConfiguration theirs calls Service n/a";
        assert_eq!(calls.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
