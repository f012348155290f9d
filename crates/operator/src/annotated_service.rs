//! Controller that creates a ServingCertificate for each Service with the annotation for one.

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

/// Why a reconciliation failed and is retried.
#[derive(Debug, Error)]
#[error(transparent)]
struct ReconcileError(#[from] RequestError);

/// Settings of this controller's worker.
const WORKER: worker::Settings = worker::Settings::new("annotated-service", 2);

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// If a reconciliation panics.
pub(crate) fn run(
    context: Arc<Context>,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed, so that this body is compiled once here instead of in every program that runs it.
    Box::pin(async move {
        for kind in [kinds::SERVICE, kinds::SERVING_CERTIFICATE] {
            context.watches.start(Watch::all(kind));
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
        // The garbage collector deletes the ServingCertificate.
        return Ok(Action::AwaitChange);
    };
    let certificate = kinds::SERVING_CERTIFICATE.object(key.namespace.as_deref(), &key.name);
    let live = context.index.find(&certificate);
    let uid = live
        .as_deref()
        .and_then(|live| object::text(live, "/metadata/uid"));
    let made = live.as_deref().filter(|live| is_owned_by(live, &service));
    let kinds = context.index.target_kinds();
    let (secret, issuer) = requested_secret(&service).unzip();
    let requests_service_ca = issuer == Some(RequestedIssuer::ServiceCa);
    if requests_service_ca && !kinds.replaced_injectors().contains(&CaInjector::ServiceCa) {
        return Ok(Action::AwaitChange);
    }
    let problem = match (secret, &live) {
        (None, _) if made.is_none() => return Ok(Action::AwaitChange),
        (Some(_), None) if requests_service_ca && kinds.running_injectors().contains(&CaInjector::ServiceCa) => {
            "service-ca is running and issues a certificate for the same annotation: stop service-ca, or remove the annotation".to_owned()
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
                // The Secret name is immutable. The deletion triggers a reconciliation that creates a new
                // ServingCertificate.
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
                .create(&new_certificate(&service, &key, secret), names::CERTIFICATES)
                .await;
            match made {
                Ok(_) => {
                    info!(%certificate, "Created the ServingCertificate that a Service requests");
                    return Ok(Action::AwaitChange);
                }
                // The ServingCertificate exists. The watch will deliver it.
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

/// The controller that a Service requests its certificate from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestedIssuer {
    Windlass,
    ServiceCa,
}

/// Returns the Secret that a Service requests, and from which controller.
fn requested_secret(service: &Value) -> Option<(&str, RequestedIssuer)> {
    let others = SERVICE_CA_SERVING_CERT.map(|annotation| (annotation, RequestedIssuer::ServiceCa));
    let mut annotations = [(names::SERVING_CERT_SECRET, RequestedIssuer::Windlass)]
        .into_iter()
        .chain(others);
    annotations.find_map(|(annotation, issuer)| {
        let secret = object::annotation(service, annotation).filter(|secret| !secret.is_empty())?;
        Some((secret, issuer))
    })
}

fn new_certificate(service: &Value, key: &ObjectKey, secret: &str) -> Value {
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

fn is_owned_by(certificate: &Value, service: &Value) -> bool {
    let uid = object::text(service, "/metadata/uid");
    object::items(certificate, "/metadata/ownerReferences")
        .iter()
        .any(|owner| {
            object::text(owner, "/kind") == Some(&*kinds::SERVICE.kind) && object::text(owner, "/uid") == uid
        })
}

/// Forever adds the Services that a change affects to the queue.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    add_all(&context.index, &queue);
    let mut kinds = context.index.target_kinds_changes();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // The index lives as long as this function, so the sender cannot have been dropped.
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

/// Returns the Service that a change affects: an annotated Service, or the one with the name of the
/// ServingCertificate.
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
    let fields = ["/spec", "/metadata/uid", "/metadata/ownerReferences"];
    let is_concerned = kind == kinds::SERVING_CERTIFICATE && change.differs_in(&fields);
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
    fn a_certificate_created_for_a_service_is_recognized() {
        let service = service("tls");
        let key = ObjectKey::from_object(&service).unwrap();
        let certificate = new_certificate(&service, &key, "tls");
        assert!(is_owned_by(&certificate, &service));
        let mut other = service.clone();
        other["metadata"]["uid"] = "2".into();
        assert!(!is_owned_by(&certificate, &other));
        let parsed: windlass_api::ServingCertificate = serde_json::from_value(certificate).unwrap();
        assert_eq!(
            (parsed.spec.service_name, parsed.spec.secret_name),
            ("s".into(), "tls".into())
        );
    }

    #[test]
    fn only_services_with_a_current_or_past_request_are_queued() {
        let change = |before: Value, after: Value| Change {
            key: ObjectKey::from_object(&before).unwrap(),
            before: Some(before.into()),
            after: Some(after.into()),
        };
        assert!(affected_key(&change(service("tls"), service(""))).is_some());
        assert!(affected_key(&change(service(""), service(""))).is_none());
    }

    #[test]
    fn the_annotation_of_windlass_takes_precedence_over_service_ca() {
        let mut asking = service("");
        assert_eq!(requested_secret(&asking), None);
        asking["metadata"]["annotations"][SERVICE_CA_SERVING_CERT[1]] = "other".into();
        assert_eq!(
            requested_secret(&asking),
            Some(("other", RequestedIssuer::ServiceCa))
        );
        asking["metadata"]["annotations"][names::SERVING_CERT_SECRET] = "tls".into();
        assert_eq!(
            requested_secret(&asking),
            Some(("tls", RequestedIssuer::Windlass))
        );
    }
}
