//! The kinds into which both cert-manager and Windlass inject a CA bundle.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};

use super::super::{
    foreign::{certificates_of_bundle, version},
    injection::NAMESPACE,
};
use crate::{
    request::text,
    steps::{CRDS, MUTATING, PATIENCE, VALIDATING, check, get, succeed, until},
};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// An object of such a kind that receives no traffic.
pub(super) struct Injectable {
    collection: &'static str,
    object: Value,
    /// The path of the CA bundle.
    bundle: &'static str,
}

/// The content and the owners of a CA bundle.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ownership {
    certificates: BTreeSet<String>,
    /// The field managers that own it, with the time of their last write.
    owners: Vec<(String, String)>,
}

impl Injectable {
    /// One object of each kind.
    pub(super) fn of_each_kind(name: &str, annotations: &Value) -> Vec<Self> {
        let service = json!({"namespace": NAMESPACE, "name": "hook", "port": 443});
        let configuration = |kind: &str| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": name, "annotations": annotations},
                "webhooks": [{
                    "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": service},
                    "rules": [{
                        "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                        "resources": ["nothings"],
                    }],
                }],
            })
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{name}s.injected.example.com"), "annotations": annotations},
            "spec": {
                "group": "injected.example.com", "scope": "Namespaced",
                "names": {"plural": format!("{name}s"), "kind": name},
                "versions": [version("v1", true)],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"], "clientConfig": {"service": service},
                }},
            },
        });
        let group = format!("{name}.aggregated.example.com");
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("v1.{group}"), "annotations": annotations},
            "spec": {
                "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": service,
            },
        });
        let (in_webhook, in_conversion) = (
            "/webhooks/0/clientConfig/caBundle",
            "/spec/conversion/webhook/clientConfig/caBundle",
        );
        [
            (
                VALIDATING,
                configuration("ValidatingWebhookConfiguration"),
                in_webhook,
            ),
            (
                MUTATING,
                configuration("MutatingWebhookConfiguration"),
                in_webhook,
            ),
            (CRDS, definition, in_conversion),
            (API_SERVICES, api_service, "/spec/caBundle"),
        ]
        .map(|(collection, object, bundle)| Self {
            collection,
            object,
            bundle,
        })
        .into()
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name())
    }

    pub(super) fn name(&self) -> &str {
        text(&self.object, "/metadata/name")
    }

    async fn ownership(&self, client: &Client) -> anyhow::Result<Ownership> {
        let path = self.path();
        let object = get(client, &path)
            .await?
            .with_context(|| format!("{path} does not exist"))?;
        let entries = object["metadata"]["managedFields"].as_array();
        let owners = entries
            .into_iter()
            .flatten()
            .filter(|entry| entry["fieldsV1"].to_string().contains(r#""f:caBundle""#))
            .map(|entry| {
                (
                    text(entry, "/manager").to_owned(),
                    text(entry, "/time").to_owned(),
                )
            });
        Ok(Ownership {
            certificates: certificates_of_bundle(text(&object, self.bundle)),
            owners: owners.collect(),
        })
    }
}

pub(super) async fn create(client: &Client, injectables: &[Injectable]) -> anyhow::Result<()> {
    for injectable in injectables {
        succeed(client, "POST", injectable.collection, Some(&injectable.object)).await?;
    }
    Ok(())
}

/// Sets annotations; null removes one.
pub(super) async fn annotate(
    client: &Client,
    injectables: &[Injectable],
    annotations: &Value,
) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"annotations": annotations}});
    for injectable in injectables {
        succeed(client, "PATCH", &injectable.path(), Some(&patch)).await?;
    }
    Ok(())
}

/// Removes the CA bundles.
pub(super) async fn remove_bundles(client: &Client, injectables: &[Injectable]) -> anyhow::Result<()> {
    for injectable in injectables {
        let patch = json!([{"op": "remove", "path": injectable.bundle}]);
        succeed(client, "PATCH", &injectable.path(), Some(&patch)).await?;
    }
    Ok(())
}

/// Waits until each object has exactly these certificates, owned only by `manager`.
pub(super) async fn wait_for_bundles(
    client: &Client,
    injectables: &[Injectable],
    certificates: &BTreeSet<String>,
    manager: &str,
) -> anyhow::Result<()> {
    for injectable in injectables {
        let what = format!("{} has its CA bundle from {manager}", injectable.path());
        until(&what, PATIENCE, async || {
            let ownership = injectable.ownership(client).await?;
            let is_done = ownership.certificates == *certificates
                && ownership.owners.iter().map(|(owner, _)| owner).eq([manager]);
            Ok(check(is_done, || format!("{ownership:?}")))
        })
        .await?;
    }
    Ok(())
}

/// Checks that each object has exactly these certificates.
pub(super) async fn check_bundles(
    client: &Client,
    injectables: &[Injectable],
    certificates: &BTreeSet<String>,
) -> anyhow::Result<()> {
    for injectable in injectables {
        let ownership = injectable.ownership(client).await?;
        anyhow::ensure!(
            ownership.certificates == *certificates,
            "{}: {ownership:?}",
            injectable.path()
        );
    }
    Ok(())
}

/// Checks that no CA bundle is written during this time.
pub(super) async fn check_unchanged(
    client: &Client,
    injectables: &[Injectable],
    duration: Duration,
) -> anyhow::Result<()> {
    let mut before = Vec::new();
    for injectable in injectables {
        before.push(injectable.ownership(client).await?);
    }
    tokio::time::sleep(duration).await;
    for (injectable, before) in injectables.iter().zip(before) {
        let after = injectable.ownership(client).await?;
        anyhow::ensure!(
            after == before,
            "{} was written: {before:?}, now {after:?}",
            injectable.path()
        );
    }
    Ok(())
}
