//! A stand-in for OpenShift's service-ca, which injects its CA bundle into annotated objects.
//!
//! No proxy serves its module. The stand-in follows `pkg/controller/cabundleinjector` of service-ca-operator:
//! all `caBundle`s of an annotated object get the same bundle.

use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_object::ca_injectors::CaInjector;
use windlass_trust::injection::TargetKind;

use crate::{
    request::send,
    steps::{CRDS, MUTATING, VALIDATING, get},
};

/// The interval between two passes.
const LOOK: Duration = Duration::from_millis(200);

/// The stand-in for service-ca; it runs until it is stopped.
pub(crate) struct ServiceCa {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl ServiceCa {
    /// Starts it as the cluster admin. The bundle is in base64.
    pub(crate) fn start(client: &Client, bundle: String) -> Self {
        let stop = CancellationToken::new();
        let (client, token) = (client.clone(), stop.clone());
        let task = tokio::spawn(async move {
            while token
                .run_until_cancelled(tokio::time::sleep(LOOK))
                .await
                .is_some()
            {
                inject(&client, &bundle).await?;
            }
            Ok(())
        });
        Self { stop, task }
    }

    /// Stops it.
    ///
    /// # Errors
    ///
    /// Fails if a pass has failed.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?
    }
}

async fn inject(client: &Client, bundle: &str) -> anyhow::Result<()> {
    for (collection, api_version, kind) in [
        (
            VALIDATING,
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
        ),
        (
            MUTATING,
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
        ),
        (CRDS, "apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ] {
        let Some(mut list) = get(client, collection).await? else {
            continue;
        };
        for object in list["items"].as_array_mut().into_iter().flatten() {
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
            let injected = injected(object, bundle);
            if CaInjector::ServiceCa.annotation_on(object).is_none() || injected == *object {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let answer = send(client, "PUT", &format!("{collection}/{name}"), Some(&injected)).await?;
            // An object that another client changed or deleted is processed again.
            anyhow::ensure!([200, 404, 409].contains(&answer.code), "service-ca: {answer}");
        }
    }
    Ok(())
}

fn injected(object: &Value, bundle: &str) -> Value {
    let mut injected = object.clone();
    let holders = TargetKind::from_object(object).map(|kind| kind.holders(object));
    for holder in holders.into_iter().flatten() {
        if let Some(client) = injected
            .pointer_mut(&holder.pointer)
            .and_then(Value::as_object_mut)
        {
            client.insert("caBundle".to_owned(), bundle.into());
        }
    }
    injected
}
