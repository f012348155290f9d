//! Services that ask for a certificate by an annotation: each has a ServingCertificate made for it.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::{sync::broadcast::error::RecvError, task::JoinError};
use tokio_util::sync::CancellationToken;
use tracing::info;
use windlass_cluster::{
    Change, Index, Kind, RequestError, kinds,
    watch::Watch,
    worker::{self, Action, Queue},
};
use windlass_object::{
    ObjectKey,
    ca_injectors::{CaInjector, SERVICE_CA_SERVING_CERT},
    names, object,
};

use crate::{context::Context, controller};

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
#[error(transparent)]
struct ReconcileError(#[from] RequestError);

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("annotated-service", 2);

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(crate) fn run(
    context: Arc<Context>,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        for kind in [kinds::SERVICE, kinds::SERVING_CERTIFICATE] {
            context.watches.want(Watch::all(kind));
        }
        let queue = Arc::new(Queue::new());
        let router = enqueue(context.clone(), queue.clone());
        let begin = |_| |service: ObjectKey| reconcile(context.clone(), service);
        controller::run(
            &context,
            WORKER,
            context.is_target(),
            queue,
            router,
            begin,
            shutdown,
        )
        .await
    })
}

async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Action, ReconcileError> {
    let Some(service) = context.index.find(&key) else {
        // What was made for it goes with it.
        return Ok(Action::AwaitChange);
    };
    let certificate = kinds::SERVING_CERTIFICATE.object(key.namespace.as_deref(), &key.name);
    let live = context.index.find(&certificate);
    let uid = live
        .as_deref()
        .and_then(|live| object::text(live, "/metadata/uid"));
    let made = live.as_deref().filter(|live| is_made_for(live, &service));
    let kinds = context.index.target_kinds();
    let (secret, asked) = requested_secret(&service).unzip();
    let asks_service_ca = asked == Some(Asked::ServiceCa);
    if asks_service_ca && !kinds.replaced_injectors().contains(&CaInjector::ServiceCa) {
        return Ok(Action::AwaitChange);
    }
    let problem = match (secret, &live) {
        (None, _) if made.is_none() => return Ok(Action::AwaitChange),
        (Some(_), None) if asks_service_ca && kinds.running_injectors().contains(&CaInjector::ServiceCa) => {
            "service-ca is at work and answers the annotation of the Service itself: stop it, or remove the annotation".to_owned()
        }
        (None, _) => {
            context.cluster.delete(&certificate, uid).await?;
            info!(%certificate, "Deleted the ServingCertificate of a Service that no longer requests one");
            return Ok(Action::AwaitChange);
        }
        (Some(secret), Some(live)) => {
            if object::text(live, "/spec/secretName") == Some(secret)
                && object::text(live, "/spec/serviceName") == Some(&key.name)
            {
                return Ok(Action::AwaitChange);
            }
            if made.is_some() {
                // Its Secret cannot change: another one is made when it is gone.
                context.cluster.delete(&certificate, uid).await?;
                return Ok(Action::AwaitChange);
            }
            format!(
                "{certificate} exists and was not created for this Service: delete it, or remove the annotation {}",
                names::SERVING_CERT_SECRET
            )
        }
        (Some(secret), None) => {
            let made = context
                .cluster
                .create(&made_for(&service, &key, secret), names::CERTIFICATES)
                .await;
            match made {
                Ok(_) => {
                    info!(%certificate, "Created the ServingCertificate that a Service requests");
                    return Ok(Action::AwaitChange);
                }
                // The watch tells of the one that is there.
                Err(error) if error.is_conflict() => return Ok(Action::AwaitChange),
                Err(error) if error.is_invalid() => error.to_string(),
                Err(error) => return Err(error.into()),
            }
        }
    };
    context
        .events
        .warn(&service, "Issue", "NoServingCertificate", &problem);
    Ok(Action::AwaitChange)
}

/// Whom a Service asks for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Windlass,
    ServiceCa,
}

/// The Secret that a Service asks for, and whom.
fn requested_secret(service: &Value) -> Option<(&str, Asked)> {
    let others = SERVICE_CA_SERVING_CERT.map(|annotation| (annotation, Asked::ServiceCa));
    let mut annotations = [(names::SERVING_CERT_SECRET, Asked::Windlass)]
        .into_iter()
        .chain(others);
    annotations.find_map(|(annotation, asked)| {
        let secret = object::annotation(service, annotation).filter(|secret| !secret.is_empty())?;
        Some((secret, asked))
    })
}

fn made_for(service: &Value, key: &ObjectKey, secret: &str) -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": kinds::SERVING_CERTIFICATE.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "ownerReferences": [{
                "apiVersion": key.api_version,
                "kind": key.kind,
                "name": key.name,
                "uid": service["metadata"]["uid"],
                "controller": true,
            }],
        },
        "spec": { "serviceName": key.name, "secretName": secret },
    })
}

fn is_made_for(certificate: &Value, service: &Value) -> bool {
    let uid = object::text(service, "/metadata/uid");
    object::items(certificate, "/metadata/ownerReferences")
        .iter()
        .any(|owner| {
            object::text(owner, "/kind") == Some(&*kinds::SERVICE.kind) && object::text(owner, "/uid") == uid
        })
}

/// Puts every Service into the queue that a change concerns, for ever.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    add_all(&context.index, &queue);
    let mut kinds = context.index.target_kinds_changes();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // The index lives as long as this, so it cannot have been dropped.
            _ = kinds.changed() => {
                add_all(&context.index, &queue);
                continue;
            }
        };
        match change {
            Ok(change) => {
                if let Some(service) = affected_key(&change) {
                    queue.add(service);
                }
            }
            Err(RecvError::Lagged(_)) => add_all(&context.index, &queue),
            Err(RecvError::Closed) => return,
        }
    }
}

fn add_all(index: &Index, queue: &Queue<ObjectKey>) {
    for service in index.objects(&kinds::SERVICE) {
        let Some(key) = ObjectKey::from_object(&service) else {
            continue;
        };
        let certificate = kinds::SERVING_CERTIFICATE.object(key.namespace.as_deref(), &key.name);
        if requested_secret(&service).is_some() || index.find(&certificate).is_some() {
            queue.add(key);
        }
    }
}

/// The Service that a change concerns: its own annotation, or the ServingCertificate with its name.
fn affected_key(change: &Change) -> Option<ObjectKey> {
    let key = &change.key;
    let kind = Kind::from_key(key);
    if kind == kinds::SERVICE {
        return change
            .versions()
            .any(|version| requested_secret(&version).is_some())
            .then(|| key.clone());
    }
    // The status of a ServingCertificate is written at each step of a rotation.
    let asked = ["/spec", "/metadata/uid", "/metadata/ownerReferences"];
    let is_concerned = kind == kinds::SERVING_CERTIFICATE && change.differs_in(&asked);
    is_concerned.then(|| kinds::SERVICE.object(key.namespace.as_deref(), &key.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(annotation: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "n", "name": "s", "uid": "1", "annotations": {names::SERVING_CERT_SECRET: annotation}},
        })
    }

    #[test]
    fn what_is_made_for_a_service_is_known_as_such() {
        let service = service("tls");
        let key = ObjectKey::from_object(&service).unwrap();
        let certificate = made_for(&service, &key, "tls");
        assert!(is_made_for(&certificate, &service));
        let mut other = service.clone();
        other["metadata"]["uid"] = "2".into();
        assert!(!is_made_for(&certificate, &other));
        let parsed: windlass_api::ServingCertificate = serde_json::from_value(certificate).unwrap();
        assert_eq!(
            (parsed.spec.service_name, parsed.spec.secret_name),
            ("s".into(), "tls".into())
        );
    }

    #[test]
    fn only_services_that_ask_or_asked_are_looked_at() {
        let change = |before: Value, after: Value| Change {
            key: ObjectKey::from_object(&before).unwrap(),
            before: Some(before.into()),
            after: Some(after.into()),
        };
        assert!(affected_key(&change(service("tls"), service(""))).is_some());
        assert!(affected_key(&change(service(""), service(""))).is_none());
    }

    #[test]
    fn a_service_asks_us_before_it_asks_service_ca() {
        let mut asking = service("");
        assert_eq!(requested_secret(&asking), None);
        asking["metadata"]["annotations"][SERVICE_CA_SERVING_CERT[1]] = "other".into();
        assert_eq!(requested_secret(&asking), Some(("other", Asked::ServiceCa)));
        asking["metadata"]["annotations"][names::SERVING_CERT_SECRET] = "tls".into();
        assert_eq!(requested_secret(&asking), Some(("tls", Asked::Windlass)));
    }
}
