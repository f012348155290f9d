//! What asks for certificates and trust bundles, and is never called.

use std::time::Duration;

use clap::ValueEnum;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use windlass_scenarios::steps::{
    CRDS, MUTATING, VALIDATING, check, conditions, get, serving_certificates, succeed, until,
};

/// The kinds of targets that a bundle has.
pub(super) const TARGET_KINDS: [(&str, &str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition", CRDS),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        MUTATING,
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        VALIDATING,
    ),
];

/// Objects that are created at a time.
const AT_ONCE: usize = 8;

/// How long after a change of its conversion the API server gives up the storage of a kind; one that is asked to delete the
/// objects meanwhile waits a minute.
const TEARDOWN: Duration = Duration::from_secs(10);

/// How long removing all targets may take.
const REMOVED: Duration = Duration::from_secs(300);

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

    fn collection(self) -> &'static str {
        match self {
            Self::Definitions => CRDS,
            Self::Webhooks => VALIDATING,
        }
    }

    /// The name of one of the targets.
    fn name(self, number: u32) -> String {
        match self {
            Self::Definitions => format!("{}.{GROUP}", plural(number)),
            Self::Webhooks => format!("idle-{number}"),
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
        for_each(targets, async |number| {
            let object = match kind {
                CrowdKind::Definitions => definition(namespace, number, certificate),
                CrowdKind::Webhooks => target(namespace, &kind.name(number), certificate),
            };
            succeed(client, "POST", kind.collection(), Some(&object)).await?;
            Ok(())
        })
        .await
    }

    /// Removes the targets. A CustomResourceDefinition with a conversion goes slowly, and many of them one after the other
    /// take longer than a cluster has for being cleaned up.
    pub(super) async fn remove(&self, client: &Client) -> anyhow::Result<()> {
        let path = |number| format!("{}/{}", self.kind.collection(), self.kind.name(number));
        if self.kind == CrowdKind::Definitions {
            let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
            for_each(self.targets, async |number| {
                succeed(client, "PATCH", &path(number), Some(&none)).await?;
                Ok(())
            })
            .await?;
            tokio::time::sleep(TEARDOWN).await;
        }
        for_each(self.targets, async |number| {
            succeed(client, "DELETE", &path(number), None).await?;
            Ok(())
        })
        .await?;
        for_each(self.targets, async |number| {
            until("a target is gone", REMOVED, async || {
                let left = get(client, &path(number)).await?;
                Ok(check(left.is_none(), || path(number)))
            })
            .await
        })
        .await
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

/// Does something for each number below `count`, some at a time.
async fn for_each(count: u32, work: impl AsyncFn(u32) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let working = stream::iter((0..count).map(|number| work(number).boxed_local()));
    working.buffer_unordered(AT_ONCE).try_collect().await
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
    let (plural, kind) = (plural(number), format!("Idle{number}"));
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": metadata(&CrowdKind::Definitions.name(number), namespace, certificate),
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": namespace, "name": certificate}}}}}})
}

/// What the resource of a target is called.
fn plural(number: u32) -> String {
    format!("idles{number}")
}

fn metadata(name: &str, namespace: &str, certificate: &str) -> Value {
    json!({"name": name, "annotations": {"windlass.dev/inject-ca-from": format!("{namespace}/{certificate}")}})
}
