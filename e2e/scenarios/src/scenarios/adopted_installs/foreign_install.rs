//! An install of the sample by other manifests, with certificates of another issuer.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use rcgen::KeyPair;
use serde_json::{Value, json};
use windlass_object::ca_injectors::{CERT_MANAGER_CERTIFICATE, CERT_MANAGER_CERTIFICATE_NAME, SERVICE_CA};
use windlass_trust::pki::{CertificateAuthority, DnsNames, Terms, Validity};

use crate::{
    sample::{self, IMAGE, NAMESPACE, WIDGETS},
    steps::{CRDS, MUTATING, PATIENCE, VALIDATING, check, get, is_rolled_out, succeed, until},
};

/// The Secret with the serving certificate.
pub(super) const SECRET: &str = "webhook-server-cert";

/// The Certificate of that Secret.
pub(super) const CERTIFICATE: &str = "serving-cert";

/// The pod labels of both installs.
const APP: (&str, &str) = ("app.kubernetes.io/name", "sample-operator");

/// The differences between such installs.
#[derive(Clone, Debug)]
pub(super) struct ForeignInstall {
    /// The called Service.
    pub(super) service: &'static str,
    /// The name of the MutatingWebhookConfiguration.
    pub(super) mutating: &'static str,
    /// Annotations of the objects with a CA bundle.
    pub(super) annotations: Value,
}

/// The issuer of the serving certificate.
pub(super) struct InstallIssuer {
    authority: CertificateAuthority,
    names: DnsNames,
}

impl ForeignInstall {
    /// Uses kubebuilder's names, of which some equal the bundle's.
    pub(super) fn kubebuilder() -> Self {
        Self {
            service: "webhook-service",
            mutating: "sample-mutating-webhook-configuration",
            annotations: json!({CERT_MANAGER_CERTIFICATE: format!("{NAMESPACE}/{CERTIFICATE}")}),
        }
    }

    /// Uses kubebuilder's names, and OpenShift's service-ca issues the certificate and the CA bundle.
    pub(super) fn openshift() -> Self {
        Self {
            annotations: json!({SERVICE_CA[0]: "true"}),
            ..Self::kubebuilder()
        }
    }

    /// Uses only names of the bundle.
    pub(super) fn with_bundle_names() -> Self {
        Self {
            service: "sample-operator-service",
            mutating: "mwidget.sample.windlass.dev",
            annotations: json!({}),
        }
    }

    /// The Deployment with its Service and ServiceAccount.
    pub(super) fn servers(&self) -> Vec<Value> {
        let labels = json!({APP.0: APP.1});
        let mut deployment = sample::server("sample-operator", SECRET, 2);
        deployment["metadata"]["namespace"] = NAMESPACE.into();
        deployment["spec"]["selector"] = json!({"matchLabels": labels});
        deployment["spec"]["template"]["metadata"]["labels"] = labels.clone();
        deployment["spec"]["template"]["spec"]["serviceAccountName"] = "sample-operator".into();
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = format!("{IMAGE}:v1").into();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"namespace": NAMESPACE, "name": "sample-operator"}});
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": NAMESPACE, "name": self.service},
            "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": 9443}]}});
        vec![account, service, deployment]
    }

    /// The objects that call the servers.
    pub(super) fn callers(&self, issuer: &InstallIssuer) -> anyhow::Result<Vec<Value>> {
        let client = |path: &str| {
            json!({"caBundle": issuer.bundle(),
                "service": {"namespace": NAMESPACE, "name": self.service, "port": 443, "path": path}})
        };
        let mut crd = sample::manifest()?;
        crd["metadata"]["annotations"] = self.annotations.clone();
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": client("/convert")}});
        let configuration = |kind: &str, name: &str, webhook: &str, path: &str| {
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": name, "annotations": self.annotations},
                "webhooks": [{"name": webhook, "clientConfig": client(path), "failurePolicy": "Fail",
                    "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [{
                        "apiGroups": [sample::GROUP], "apiVersions": ["v1", "v1beta1"],
                        "operations": ["CREATE", "UPDATE"], "resources": ["widgets"]}]}]})
        };
        let (validating, mutating) = ("vwidget.sample.windlass.dev", "mwidget.sample.windlass.dev");
        Ok(vec![
            crd,
            configuration(
                "ValidatingWebhookConfiguration",
                validating,
                validating,
                "/validate",
            ),
            configuration("MutatingWebhookConfiguration", self.mutating, mutating, "/mutate"),
        ])
    }

    /// Creates all objects and waits until the servers are ready.
    pub(super) async fn install(&self, client: &Client, issuer: &InstallIssuer) -> anyhow::Result<()> {
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
        succeed(client, "POST", &collection("Secret"), Some(&issuer.secret()?)).await?;
        for object in self.servers() {
            let kind = object["kind"].as_str().unwrap_or_default();
            succeed(client, "POST", &collection(kind), Some(&object)).await?;
        }
        wait_until_available(client).await?;
        for object in self.callers(issuer)? {
            let kind = object["kind"].as_str().unwrap_or_default();
            succeed(client, "POST", &collection(kind), Some(&object)).await?;
        }
        wait_until_served(client).await
    }
}

/// Waits until all pods of the sample's Deployment are available.
pub(super) async fn wait_until_available(client: &Client) -> anyhow::Result<()> {
    until("the servers are available", PATIENCE, async || {
        let deployment = get(client, sample::DEPLOYMENT).await?.context("no Deployment")?;
        Ok(check(is_rolled_out(&deployment), || {
            deployment["status"].to_string()
        }))
    })
    .await
}

/// Waits until widgets are served.
pub(super) async fn wait_until_served(client: &Client) -> anyhow::Result<()> {
    until(&format!("{WIDGETS} is served"), PATIENCE, async || {
        let found = get(client, &sample::widgets("default", "v1")).await?;
        Ok(found.map(drop).ok_or_else(|| "404".to_owned()))
    })
    .await
}

/// The collection of a kind.
pub(super) fn collection(kind: &str) -> String {
    let core = |plural: &str| format!("/api/v1/namespaces/{NAMESPACE}/{plural}");
    match kind {
        "Secret" => core("secrets"),
        "Service" => core("services"),
        "ServiceAccount" => core("serviceaccounts"),
        "Deployment" => format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"),
        "ValidatingWebhookConfiguration" => VALIDATING.to_owned(),
        "MutatingWebhookConfiguration" => MUTATING.to_owned(),
        _ => CRDS.to_owned(),
    }
}

impl InstallIssuer {
    /// Creates an issuer for the Service of `foreign`.
    pub(super) fn new(foreign: &ForeignInstall) -> anyhow::Result<Self> {
        let names = DnsNames::for_service(foreign.service, NAMESPACE, &[])?;
        let key = KeyPair::generate()?.into();
        let authority = CertificateAuthority::self_signed(&names, 1, key, &terms())?;
        Ok(Self { authority, names })
    }

    /// The CA bundle, in base64.
    pub(super) fn bundle(&self) -> String {
        STANDARD.encode(self.authority.certificate().to_pem())
    }

    /// The Secret that the servers mount, as cert-manager writes it.
    pub(super) fn secret(&self) -> anyhow::Result<Value> {
        let key = KeyPair::generate()?.into();
        let leaf = self.authority.issue(&self.names, &key, &terms())?;
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"namespace": NAMESPACE, "name": SECRET,
                "annotations": {CERT_MANAGER_CERTIFICATE_NAME: CERTIFICATE}},
            "data": {
                "ca.crt": self.bundle(),
                "tls.crt": STANDARD.encode(leaf.to_pem()),
                "tls.key": STANDARD.encode(key.to_pem().as_bytes()),
            },
        }))
    }
}

fn terms() -> Terms {
    let now = Timestamp::now();
    let mut serial: [u8; 16] = rand::random();
    serial[0] &= 0x7f;
    Terms {
        serial,
        now,
        validity: Validity {
            not_before: now - SignedDuration::from_hours(1),
            not_after: now + SignedDuration::from_hours(24),
        },
    }
}
