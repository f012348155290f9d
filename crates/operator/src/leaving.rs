//! What would keep a BundleDeployment from going: asked by the removal before it takes anything away, and by the guard and
//! by `windlass uninstall` before there is a removal at all, since a deletion cannot be taken back.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::DeletionPolicy;
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_crd::{
    is_converting, crd_release::can_serve_stored_only, stage::may_stop_converting, storage_version,
};
use windlass_object::{ObjectKey, names, object};

use crate::install::traffic::CalledPath;

/// The kind that a CRD defines, in the version in which its objects are stored.
pub(crate) fn stored_kind(crd: &Value) -> Kind {
    Kind::from_crd(crd, storage_version(crd).unwrap_or_default())
}

/// Whether objects of a CRD are stored. They are read in the version that they are stored in, which needs no webhook.
///
/// # Errors
///
/// When the API server cannot list them.
pub async fn has_objects(cluster: &Cluster, crd: &Value) -> Result<bool, RequestError> {
    match cluster.any(&stored_kind(crd)).await {
        // Stored, but not served: it cannot be seen, so it must be supposed.
        Err(RequestError::UnknownKind { .. }) => Ok(true),
        found => Ok(found?.is_some()),
    }
}

/// The names of those `crds` whose conversion could not end under `policy`, because of what is stored. Under
/// [`DeletionPolicy::KeepStoredVersion`] objects are rewritten first, and none is in the way for good.
///
/// # Errors
///
/// When the API server cannot list objects.
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
        if is_converting(crd) && !may_end(crd, policy, true) && has_objects(cluster, crd).await? {
            in_use.extend(object::text(crd, "/metadata/name"));
        }
    }
    Ok(in_use)
}

/// Whether the conversion of a CRD that stays may end.
pub(crate) fn may_end(crd: &Value, policy: DeletionPolicy, has_objects: bool) -> bool {
    match policy {
        DeletionPolicy::KeepStoredVersion => can_serve_stored_only(crd, has_objects),
        DeletionPolicy::KeepCRDs | DeletionPolicy::DeleteCRDs => may_stop_converting(crd, has_objects),
    }
}

/// Those of `callers` that are not of the bundle, call a Service of which `is_going`, and depend on its answers: for each, what it
/// is and what it calls.
pub fn calls_of_others(
    callers: impl IntoIterator<Item = impl AsRef<Value>>,
    is_ours: impl Fn(&Value) -> bool,
    is_going: impl Fn(&ObjectKey) -> bool,
) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for caller in callers {
        let caller = caller.as_ref();
        let Some(key) = ObjectKey::from_object(caller).filter(|_| !is_probe(caller) && !is_ours(caller)) else {
            continue;
        };
        for CalledPath { port, .. } in CalledPath::needed_by(caller) {
            let service = kinds::SERVICE.object(Some(&port.namespace), &port.service);
            if is_going(&service) {
                calls.insert(format!("{key} calls {service}"));
            }
        }
    }
    calls
}

/// Whether it calls servers to see whether they answer: nobody's request depends on it.
pub fn is_probe(caller: &Value) -> bool {
    object::label(caller, names::PROBE).is_some()
}

/// The cluster-scoped objects with which the garbage collector deletes another one: it has no owner in a namespace.
pub fn owner_keys(object: &Value) -> impl Iterator<Item = ObjectKey> {
    let owners = object::items(object, "/metadata/ownerReferences");
    owners.iter().filter_map(|owner| {
        let text = |field| object::text(owner, field);
        let kind = Kind::named(text("/apiVersion")?.to_owned(), text("/kind")?.to_owned());
        Some(kind.object(None, text("/name")?))
    })
}

/// The policy of a BundleDeployment; the default where it has none that is known.
pub fn policy_of(deployment: &Value) -> DeletionPolicy {
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

    /// An API server that serves widgets, of which there are some or none.
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
    async fn stored_objects_of_several_served_versions_keep_a_conversion_unless_they_may_be_rewritten() {
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
    fn the_policy_is_the_default_where_it_says_nothing() {
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
            assert_eq!(policy_of(&json!({ "spec": spec })), expected);
        }
    }
    #[test]
    fn who_depends_on_a_server_that_goes_is_named() {
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
        let calls = calls_of_others(callers, is_ours, |service| service.name != "c");
        let expected = "ValidatingWebhookConfiguration theirs calls Service n/a";
        assert_eq!(calls.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
