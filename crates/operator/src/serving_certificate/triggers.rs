//! Watches of the controller, and which ServingCertificates a change affects.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tracing::info;
use windlass_cluster::{
    Change, Index, Kind, clock, endpoints, kinds,
    watch::{Selector, Watch},
    worker::Queue,
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::CaSource,
    objects::{CaSecret, label_value},
};

use super::repair::Repair;
use crate::{
    ca_injectors,
    context::Context,
    injection::{self, RECONCILE_DELAY},
    standby::StandbyRepairs,
};

/// How long to wait after a change of endpoints, since further changes of the same rollout follow.
const ENDPOINTS_SETTLE: Duration = Duration::from_millis(500);

/// Starts the required watches.
pub(super) fn watch_everything(context: &Context) {
    ca_injectors::start_watches(context);
    let whole = [kinds::SERVING_CERTIFICATE, kinds::SERVICE, kinds::ENDPOINT_SLICE];
    for watch in whole
        .map(Watch::all)
        .into_iter()
        .chain(injection::watches(&context.cluster))
    {
        context.watches.start(watch);
    }
    let ours = Selector::Label(names::SERVING_CERTIFICATE.to_owned());
    context.watches.start(Watch::all(kinds::SECRET).selected(ours));
}

/// Forever adds the ServingCertificates that a change affects to the queue. A changed target is also added to
/// the queues for repairs and for standby repairs.
pub(super) async fn enqueue(
    context: Arc<Context>,
    queue: Arc<Queue<ObjectKey>>,
    repairs: Arc<Queue<Repair>>,
    standby: StandbyRepairs<Repair>,
) {
    let mut changes = context.index.subscribe();
    add_all(&context.index, &queue);
    let mut jump = Box::pin(clock::wait_for_jump(&*context.clock));
    let mut lists = context.index.progress();
    let mut kinds = context.index.target_kinds_changes();
    let mut unlisted = context.watches.unlisted_targets();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // Scheduled steps may be due now.
            () = &mut jump => {
                info!("The clock jumped or the machine was suspended; reconciling everything");
                add_all(&context.index, &queue);
                jump.set(clock::wait_for_jump(&*context.clock));
                continue;
            }
            // The index lives as long as this function, so the sender cannot have been dropped.
            _ = kinds.changed() => {
                add_all(&context.index, &queue);
                continue;
            }
            _ = lists.changed() => {
                let before = std::mem::replace(&mut unlisted, context.watches.unlisted_targets());
                if !before.is_subset(&unlisted) {
                    // ServingCertificates that wait for unlisted targets can continue.
                    add_all(&context.index, &queue);
                }
                continue;
            }
        };
        match change {
            Ok(change) => {
                let is_target = change.ca_sources().next().is_some();
                for certificate in affected_keys(&context.index, &change, &context.namespace) {
                    if is_target {
                        let repair = Repair {
                            target: change.key.clone(),
                            certificate: certificate.clone(),
                        };
                        standby.add(&repair, &change);
                        repairs.add(repair);
                        queue.add_after(certificate, RECONCILE_DELAY);
                    } else {
                        // Endpoints change in bursts. Coalesce them, so that their writer cannot trigger a
                        // reconciliation per change.
                        let pause = if Kind::from_key(&change.key) == kinds::ENDPOINT_SLICE {
                            ENDPOINTS_SETTLE
                        } else {
                            Duration::ZERO
                        };
                        queue.add_after(certificate, pause);
                    }
                }
            }
            Err(RecvError::Lagged(_)) => {
                add_all(&context.index, &queue);
                add_orphans(&context, &queue);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Queues the owners of CA Secrets, since a ServingCertificate may have been deleted while no watch was
/// running.
pub(super) fn add_orphans(context: &Context, queue: &Queue<ObjectKey>) {
    let secrets = context
        .index
        .objects_within(&kinds::SECRET, Some(&context.namespace));
    for secret in secrets {
        if let Some(certificate) = ca_secret_owner(&secret, &context.namespace) {
            queue.add(certificate);
        }
    }
}

/// Returns the ServingCertificate that owns a Secret with CAs. Ignores other namespaces than the operator's
/// own, where other users may write such labels.
fn ca_secret_owner(secret: &Value, own_namespace: &str) -> Option<ObjectKey> {
    if object::text(secret, "/metadata/namespace") != Some(own_namespace) {
        return None;
    }
    let (namespace, name) = CaSecret::owner(secret)?;
    Some(kinds::SERVING_CERTIFICATE.object(Some(namespace), name))
}

fn add_all(index: &Index, queue: &Queue<ObjectKey>) {
    for certificate in index.objects(&kinds::SERVING_CERTIFICATE) {
        if let Some(key) = ObjectKey::from_object(&certificate) {
            queue.add(key);
        }
    }
}

/// Returns the ServingCertificates that a change affects.
fn affected_keys(index: &Index, change: &Change, own_namespace: &str) -> HashSet<ObjectKey> {
    let key = &change.key;
    let kind = Kind::from_key(key);
    if kind == kinds::SERVING_CERTIFICATE {
        // Ignore status changes: Windlass writes them, and alternating observations would cause an endless
        // loop.
        return HashSet::from_iter(has_changed_outside_status(change).then(|| key.clone()));
    }
    if kind == kinds::SECRET {
        let owners = change
            .versions()
            .filter_map(|secret| ca_secret_owner(&secret, own_namespace));
        let labels: Vec<_> = change
            .versions()
            .filter_map(|secret| object::label(&secret, names::SERVING_CERTIFICATE).map(str::to_owned))
            .collect();
        let serving = certificates(index, key.namespace.as_deref(), |certificate| {
            object::text(certificate, "/spec/secretName") == Some(&key.name)
                || object::text(certificate, "/metadata/name")
                    .is_some_and(|name| labels.contains(&label_value(name)))
        });
        return owners.chain(serving).collect();
    }
    if kind == kinds::SERVICE {
        return certificates_for_service(index, key.namespace.as_deref(), &key.name);
    }
    if kind == kinds::ENDPOINT_SLICE {
        return change
            .versions()
            .filter_map(|slice| object::label(&slice, endpoints::SERVICE_NAME).map(str::to_owned))
            .flat_map(|service| certificates_for_service(index, key.namespace.as_deref(), &service))
            .collect();
    }
    let requested: HashSet<_> = change.ca_sources().collect();
    if !requested.is_empty() {
        let requested = requested.into_iter().flat_map(|source| match source {
            CaSource::ServingCertificate { namespace, name } => {
                vec![kinds::SERVING_CERTIFICATE.object(Some(namespace), name)]
            }
            CaSource::Secret { namespace, name, .. } => certificates(index, Some(namespace), |certificate| {
                object::text(certificate, "/spec/secretName") == Some(name)
            }),
            CaSource::Certificate { .. } | CaSource::ApiServer => Vec::new(),
        });
        // A target may name a ServingCertificate that does not exist.
        let requested: HashSet<_> = requested
            .filter(|certificate| index.find(certificate).is_some())
            .collect();
        let is_concerned = !requested.is_empty() && has_relevant_change(change);
        return if is_concerned { requested } else { HashSet::new() };
    }
    HashSet::new()
}

/// Reports whether a ServingCertificate changed outside its status.
fn has_changed_outside_status(change: &Change) -> bool {
    change.differs_in(&[
        "/spec",
        "/metadata/annotations",
        "/metadata/labels",
        "/metadata/uid",
        "/metadata/deletionTimestamp",
    ])
}

/// Reports whether a target changed outside its status.
fn has_relevant_change(change: &Change) -> bool {
    change.differs_in(&[
        "/spec",
        "/webhooks",
        "/data",
        "/metadata/annotations",
        "/metadata/uid",
    ])
}

fn certificates_for_service(index: &Index, namespace: Option<&str>, service: &str) -> HashSet<ObjectKey> {
    let dns_name = format!("{service}.{}.svc", namespace.unwrap_or_default());
    certificates(index, namespace, |certificate| {
        let names = object::items(certificate, "/spec/dnsNames");
        object::text(certificate, "/spec/serviceName") == Some(service)
            || names.iter().any(|name| name.as_str() == Some(&dns_name))
    })
    .into_iter()
    .collect()
}

fn certificates(index: &Index, namespace: Option<&str>, concerns: impl Fn(&Value) -> bool) -> Vec<ObjectKey> {
    let is_concerned = |certificate: &Value| {
        object::text(certificate, "/metadata/namespace") == namespace && concerns(certificate)
    };
    let certificates = index.select(&kinds::SERVING_CERTIFICATE, is_concerned);
    certificates.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::ChangedObject;

    use super::*;

    fn names_of(gone: Value) -> Vec<String> {
        let index = Index::new();
        let watch = Watch::all(kinds::SERVING_CERTIFICATE);
        for (namespace, name) in [("n", "a"), ("n", "b"), ("m", "a")] {
            index.apply(
                &watch,
                json!({
                    "apiVersion": names::API_VERSION, "kind": "ServingCertificate",
                    "metadata": {"namespace": namespace, "name": name},
                    "spec": {"serviceName": format!("{name}-service"), "secretName": format!("{name}-cert")},
                }),
            );
        }
        let change = Change {
            key: ObjectKey::from_object(&gone).unwrap(),
            before: Some(gone.into()),
            after: None,
        };
        let mut names: Vec<_> = affected_keys(&index, &change, "windlass-system")
            .into_iter()
            .map(|key| format!("{}/{}", key.namespace.unwrap_or_default(), key.name))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_change_affects_the_certificates_that_use_the_object() {
        let object = |kind: Kind, namespace: Option<&str>, name: &str, metadata: Value| {
            let mut object = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata});
            object["metadata"]["name"] = name.into();
            if let Some(namespace) = namespace {
                object["metadata"]["namespace"] = namespace.into();
            }
            object
        };
        let annotated =
            |annotation: &str, of: &str| json!({"annotations": {format!("windlass.dev/{annotation}"): of}});
        let authority = json!({
            "labels": {names::SERVING_CERTIFICATE: "a", names::SERVING_CERTIFICATE_NAMESPACE: "m"},
            "annotations": {names::SERVING_CERTIFICATE: "a"},
        });
        let slice = json!({"labels": {"kubernetes.io/service-name": "b-service"}});
        let hooks = kinds::VALIDATING_WEBHOOK_CONFIGURATION;
        for (gone, expected) in [
            (object(kinds::SECRET, Some("n"), "a-cert", json!({})), vec!["n/a"]),
            (
                object(kinds::SECRET, Some("windlass-system"), "m.a", authority.clone()),
                vec!["m/a"],
            ),
            // A copy of the labels in another namespace must not affect the certificate of another user.
            (object(kinds::SECRET, Some("n"), "copy", authority), vec!["n/a"]),
            (
                object(kinds::SERVICE, Some("m"), "a-service", json!({})),
                vec!["m/a"],
            ),
            (object(kinds::ENDPOINT_SLICE, Some("n"), "x", slice), vec!["n/b"]),
            (
                object(hooks.clone(), None, "w", annotated("inject-ca-from", "n/b")),
                vec!["n/b"],
            ),
            (
                object(
                    hooks.clone(),
                    None,
                    "w",
                    annotated("inject-ca-from-secret", "n/b-cert"),
                ),
                vec!["n/b"],
            ),
            (
                object(hooks.clone(), None, "w", annotated("inject-ca-from", "n/none")),
                vec![],
            ),
            (object(hooks, None, "w", json!({})), vec![]),
        ] {
            assert_eq!(names_of(gone.clone()), expected, "{gone}");
        }
    }

    #[test]
    fn a_status_change_does_not_queue_the_certificate() {
        let object = |metadata: Value, spec: &str, status: &str| {
            json!({
                "apiVersion": names::API_VERSION, "kind": "ServingCertificate", "metadata": metadata,
                "spec": {"serviceName": spec}, "status": {"phase": status},
            })
        };
        let plain =
            |version: &str| json!({"namespace": "n", "name": "a", "uid": "1", "resourceVersion": version});
        let with = |field: &str, value: Value| {
            let mut metadata = plain("2");
            metadata[field] = value;
            metadata
        };
        for (after, expected) in [
            (object(plain("2"), "s", "Signing"), 0),
            (object(plain("2"), "other", "Stable"), 1),
            (object(with("uid", "2".into()), "s", "Stable"), 1),
            (object(with("labels", json!({"a": "b"})), "s", "Stable"), 1),
            (
                object(with("annotations", json!({names::ROTATE: "now"})), "s", "Stable"),
                1,
            ),
            (object(with("deletionTimestamp", "now".into()), "s", "Stable"), 1),
        ] {
            let change = Change {
                key: ObjectKey::from_object(&after).unwrap(),
                before: Some(object(plain("1"), "s", "Stable").into()),
                after: Some(after.clone().into()),
            };
            assert_eq!(
                affected_keys(&Index::new(), &change, "windlass-system").len(),
                expected,
                "{after}"
            );
        }
    }

    #[test]
    fn a_status_change_of_a_target_is_ignored() {
        let target = |status: &str, bundle: &str| {
            let target = json!({"spec": {"caBundle": bundle}, "status": status, "metadata": {}});
            Some(ChangedObject::from(target))
        };
        let change = |before, after| Change {
            key: kinds::API_SERVICE.object(None, "v1.example.com"),
            before,
            after,
        };
        assert!(!has_relevant_change(&change(target("1", "a"), target("2", "a"))));
        assert!(has_relevant_change(&change(target("1", "a"), target("1", "b"))));
        assert!(has_relevant_change(&change(None, target("1", "b"))));
    }
}
