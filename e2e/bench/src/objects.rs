//! What asks for certificates and trust bundles, and is never called.

use std::time::Duration;

use clap::ValueEnum;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use windlass_scenarios::steps::{
    CRDS, VALIDATING, check, conditions, get, serving_certificates, succeed, until,
};

/// Objects that are created at a time.
const AT_ONCE: usize = 8;

/// The group of the resources of targets, which nobody sends anything to.
const GROUP: &str = "idle.example.com";

/// What the targets of a crowd are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CrowdKind {
    /// CustomResourceDefinitions with a conversion webhook: changing one makes the API server rebuild what serves it.
    #[default]
    Definitions,
    /// ValidatingWebhookConfigurations, whose resource nothing serves.
    Webhooks,
}

/// One ServingCertificate, which no pod serves, and many targets that ask for its trust bundle.
#[derive(Clone, Debug)]
pub(super) struct TargetCrowd {
    pub(super) namespace: &'static str,
    /// The name of the ServingCertificate, and of its Service.
    pub(super) certificate: &'static str,
    pub(super) kind: CrowdKind,
    pub(super) targets: u32,
}

// === impl CrowdKind ===

impl CrowdKind {
    /// What objects of this kind are called.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Definitions => "CustomResourceDefinitions",
            Self::Webhooks => "ValidatingWebhookConfigurations",
        }
    }
}

// === impl TargetCrowd ===

impl TargetCrowd {
    /// Creates the Service, the ServingCertificate and the targets, in a namespace that is there.
    pub(super) async fn create(&self, client: &Client) -> anyhow::Result<()> {
        let Self {
            namespace,
            certificate,
            kind,
            targets,
        } = *self;
        let services = format!("/api/v1/namespaces/{namespace}/services");
        succeed(client, "POST", &services, Some(&service(certificate))).await?;
        let certificates = serving_certificates(namespace);
        let requested = self::certificate(certificate);
        succeed(client, "POST", &certificates, Some(&requested)).await?;
        let creating = (0..targets).map(|number| async move {
            let (path, object) = match kind {
                CrowdKind::Definitions => (CRDS, definition(namespace, number, certificate)),
                CrowdKind::Webhooks => (
                    VALIDATING,
                    target(namespace, &format!("idle-{number}"), certificate),
                ),
            };
            succeed(client, "POST", path, Some(&object)).await.map(drop)
        });
        // Boxed: a stream of borrowing futures is not known to be `Send`.
        let creating = stream::iter(creating).buffer_unordered(AT_ONCE).boxed_local();
        creating.try_collect().await
    }

    /// Waits until every target carries the trust bundle, by what the ServingCertificate says.
    pub(super) async fn injected(&self, client: &Client, patience: Duration) -> anyhow::Result<()> {
        let path = format!("{}/{}", serving_certificates(self.namespace), self.certificate);
        until("every target has the trust bundle", patience, async || {
            let object = get(client, &path).await?.unwrap_or_default();
            let status = &object["status"];
            let done = status["phase"] == "Stable" && status["targets"]["current"] == self.targets;
            Ok(check(done, || format!("{}: {status}", conditions(&object))))
        })
        .await
    }
}

/// A ServingCertificate for the Service of the same name.
pub(super) fn certificate(name: &str) -> Value {
    json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": name},
        "spec": {"serviceName": name, "secretName": format!("{name}-cert")}})
}

/// A Service without pods.
pub(super) fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443, "targetPort": 9443}]}})
}

/// A webhook that asks for the trust bundle of a ServingCertificate, and that is never called: nothing serves its resource.
pub(super) fn target(namespace: &str, name: &str, certificate: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": metadata(name, namespace, certificate),
        "webhooks": [{"name": format!("{name}.idle.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"namespace": namespace, "name": certificate}},
            "rules": [{"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothings"]}]}]})
}

/// A CustomResourceDefinition that asks for the trust bundle of a ServingCertificate, and whose conversion is never called:
/// it has one version.
fn definition(namespace: &str, number: u32, certificate: &str) -> Value {
    let (plural, kind) = (format!("idles{number}"), format!("Idle{number}"));
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": metadata(&format!("{plural}.{GROUP}"), namespace, certificate),
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": namespace, "name": certificate}}}}}})
}

fn metadata(name: &str, namespace: &str, certificate: &str) -> Value {
    json!({"name": name, "annotations": {"windlass.dev/inject-ca-from": format!("{namespace}/{certificate}")}})
}
