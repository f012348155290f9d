//! Many targets of one trust bundle, which nothing ever calls.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use kube::Client;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use windlass_scenarios::{
    request, sample,
    steps::{
        CRDS, MUTATING, VALIDATING, check, conditions, get, request_rotation, serving_certificates, succeed,
        until,
    },
};

use super::objects::{GROUP, certificate, configuration, service};

/// How many webhooks a configuration has.
const WEBHOOKS: u32 = 5;

/// Who applies the targets that are applied.
const OWNER: &str = "an-owner";

/// Objects that are created at a time.
const AT_ONCE: usize = 8;

/// How long after a change of its conversion the API server gives up the storage of a kind; one that is asked to delete the
/// objects meanwhile waits a minute.
const TEARDOWN: Duration = Duration::from_secs(10);

/// How long removing all targets may take.
const REMOVED: Duration = Duration::from_secs(300);

/// What the targets of a crowd are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CrowdKind {
    /// CustomResourceDefinitions with a conversion webhook: changing one makes the API server rebuild what serves it.
    #[default]
    Definitions,
    /// ValidatingWebhookConfigurations of five webhooks, whose resource nothing serves.
    Webhooks,
    /// Of ten, one CustomResourceDefinition, five ValidatingWebhookConfigurations and four MutatingWebhookConfigurations.
    Mixed,
}

/// Whose trust bundle the targets of a crowd ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CrowdSource {
    /// A ServingCertificate's.
    #[default]
    Certificate,
    /// A Secret's, which somebody else writes.
    Secret,
}

/// One ServingCertificate, which a pod serves, or Secret; and many targets that ask for its trust bundle.
#[derive(Clone, Debug)]
pub(super) struct TargetCrowd {
    pub(super) namespace: &'static str,
    /// The name of the ServingCertificate or Secret, and of the Service that is called.
    pub(super) certificate: &'static str,
    pub(super) source: CrowdSource,
    pub(super) kind: CrowdKind,
    pub(super) targets: u32,
    /// Whether the targets are created by server-side apply.
    pub(super) applied: bool,
}

impl CrowdKind {
    /// What objects of this kind are called.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Definitions => "CustomResourceDefinitions",
            Self::Webhooks => "ValidatingWebhookConfigurations of 5 webhooks",
            Self::Mixed => "targets of mixed kinds",
        }
    }

    /// Where one of the targets is, and what it is called.
    fn place(self, number: u32) -> (&'static str, String) {
        match (self, number % 10) {
            (Self::Definitions, _) | (Self::Mixed, 0) => (CRDS, format!("{}.{GROUP}", plural(number))),
            (Self::Webhooks, _) | (Self::Mixed, 1..6) => (VALIDATING, format!("idle-{number}")),
            (Self::Mixed, _) => (MUTATING, format!("idle-{number}")),
        }
    }
}

impl TargetCrowd {
    /// Creates the Service, what the trust bundle comes from, and the targets, in a namespace that is there.
    pub(super) async fn create(&self, client: &Client) -> anyhow::Result<()> {
        let Self {
            namespace,
            certificate,
            ..
        } = *self;
        let services = format!("/api/v1/namespaces/{namespace}/services");
        succeed(client, "POST", &services, Some(&service(certificate))).await?;
        match self.source {
            CrowdSource::Certificate => {
                let certificates = serving_certificates(namespace);
                let requested = self::certificate(certificate);
                succeed(client, "POST", &certificates, Some(&requested)).await?;
                // What nobody is seen to serve keeps its CA trusted.
                let server = sample::server(certificate, &format!("{certificate}-cert"), 1);
                let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
                succeed(client, "POST", &deployments, Some(&server)).await?;
            }
            CrowdSource::Secret => {
                succeed(client, "POST", &self.secrets(), Some(&self.secret()?)).await?;
            }
        }
        for_each(self.targets, async |number| {
            let object = self.target(number);
            let (collection, name) = self.kind.place(number);
            match self.applied {
                true => {
                    let answer =
                        request::apply(client, &format!("{collection}/{name}"), OWNER, false, &object)
                            .await?;
                    anyhow::ensure!(answer.code < 300, "{collection}/{name}: {answer}");
                }
                false => {
                    succeed(client, "POST", collection, Some(&object)).await?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Replaces the CA of the source; when that was answered. A ServingCertificate begins with it then.
    pub(super) async fn change_ca(&self, client: &Client) -> anyhow::Result<Instant> {
        match self.source {
            CrowdSource::Certificate => {
                request_rotation(client, self.namespace, self.certificate, "ca").await?;
            }
            CrowdSource::Secret => {
                let path = format!("{}/{}", self.secrets(), self.certificate);
                succeed(client, "PUT", &path, Some(&self.secret()?)).await?;
            }
        }
        Ok(Instant::now())
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    /// The Secret with a new CA.
    fn secret(&self) -> anyhow::Result<Value> {
        Ok(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": self.certificate, "annotations": {"windlass.dev/allow-direct-injection": "true"}},
            "stringData": {"ca.crt": new_authority()?}}))
    }

    fn target(&self, number: u32) -> Value {
        let (collection, name) = self.kind.place(number);
        let annotation = match self.source {
            CrowdSource::Certificate => "windlass.dev/inject-ca-from",
            CrowdSource::Secret => "windlass.dev/inject-ca-from-secret",
        };
        let annotations = json!({annotation: format!("{}/{}", self.namespace, self.certificate)});
        if collection == CRDS {
            return definition(number, &annotations, self.namespace, self.certificate);
        }
        let mut object = configuration(&name, &annotations, self.namespace, self.certificate, WEBHOOKS);
        if collection == MUTATING {
            object["kind"] = "MutatingWebhookConfiguration".into();
        }
        object
    }

    /// Removes the targets. A CustomResourceDefinition with a conversion goes slowly, and many of them one after the other
    /// take longer than a cluster has for being cleaned up.
    pub(super) async fn remove(&self, client: &Client) -> anyhow::Result<()> {
        let path = |number| {
            let (collection, name) = self.kind.place(number);
            format!("{collection}/{name}")
        };
        let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        for_each(self.targets, async |number| {
            if self.kind.place(number).0 == CRDS {
                succeed(client, "PATCH", &path(number), Some(&none)).await?;
            }
            Ok(())
        })
        .await?;
        tokio::time::sleep(TEARDOWN).await;
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

/// A CustomResourceDefinition that asks for the trust bundle of a ServingCertificate, and whose conversion is never called:
/// it has one version.
fn definition(number: u32, annotations: &Value, namespace: &str, service: &str) -> Value {
    let (plural, kind) = (plural(number), format!("Idle{number}"));
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": CrowdKind::Definitions.place(number).1, "annotations": annotations},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": namespace, "name": service}}}}}})
}

/// What the resource of a target is called.
fn plural(number: u32) -> String {
    format!("idles{number}")
}

/// A CA of somebody else, in PEM.
fn new_authority() -> anyhow::Result<String> {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, "of another issuer");
    Ok(parameters.self_signed(&KeyPair::generate()?)?.pem())
}
