//! The second cluster, a sandbox, with its targets.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};
use windlass_sandbox::{Sandbox, SandboxOptions};

use super::super::foreign;
use crate::{
    cluster,
    operator::{self, OperatorProcess},
    request::text,
    steps::{CRDS, PATIENCE, VALIDATING, check, conditions, current, get, list, succeed, until},
    test_cluster::TestCluster,
};

/// The Secret with the kubeconfig.
pub(super) const SECRET: &str = "karmada-kubeconfig";

/// The name of the ServiceAccount in the second cluster, and of its role.
pub(super) const ACCOUNT: &str = "windlass";

/// The collection of Karmada's interpreter configurations.
const INTERPRETERS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations";

/// The collection of ClusterRoles.
pub(super) const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// The second cluster.
pub(super) struct SecondCluster {
    pub(super) sandbox: Sandbox,
    /// A client with all permissions.
    pub(super) client: Client,
}

impl SecondCluster {
    /// Starts a cluster in which [`ACCOUNT`] has the permissions that README.md lists.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(SandboxOptions::default()).await?;
        let admin = sandbox.kubeconfig("admin", &["system:masters"])?;
        let client = cluster::client(&admin).await?;
        let namespace = json!({"metadata": {"name": operator::NAMESPACE}});
        succeed(&client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
        succeed(
            &client,
            "POST",
            ROLES,
            Some(&role(&["get", "list", "watch", "patch"])),
        )
        .await?;
        let second = Self { sandbox, client };
        second.create_account(ACCOUNT).await?;
        let interpreters = foreign::crd(
            "config.karmada.io/v1alpha1",
            "ResourceInterpreterWebhookConfiguration",
            "resourceinterpreterwebhookconfigurations",
            false,
        );
        foreign::define(&second.client, &interpreters).await?;
        Ok(second)
    }

    /// Creates a ServiceAccount with the role, and returns its kubeconfig.
    pub(super) async fn create_account(&self, name: &str) -> anyhow::Result<String> {
        let namespace = operator::NAMESPACE;
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let account = json!({"metadata": {"name": name}});
        succeed(&self.client, "POST", &accounts, Some(&account)).await?;
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        });
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        succeed(&self.client, "POST", bindings, Some(&binding)).await?;
        Ok(self.sandbox.kubeconfig_for_service_account(namespace, name))
    }

    /// Returns the kubeconfig of [`ACCOUNT`].
    pub(super) fn kubeconfig(&self) -> String {
        self.sandbox
            .kubeconfig_for_service_account(operator::NAMESPACE, ACCOUNT)
    }

    /// Creates one target of each kind. All call `https://{service}.{namespace}.svc` and request the CA of
    /// the certificate with the name of the Service.
    pub(super) async fn create_targets(&self, namespace: &str, service: &str) -> anyhow::Result<()> {
        let asking = json!({"windlass.dev/inject-ca-from": format!("{namespace}/{service}")});
        let by_url = json!({"url": format!("https://{service}.{namespace}.svc:443/hook")});
        let by_service = json!({"service": {"namespace": namespace, "name": service}});
        let rules = json!([{
            "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"],
        }]);
        let hooks = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "remote", "annotations": asking},
            "webhooks": [{
                "name": "hook.example.com", "clientConfig": by_url, "rules": rules, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        succeed(&self.client, "POST", VALIDATING, Some(&hooks)).await?;
        let interpreter = json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": {"name": "remote", "annotations": asking},
            "webhooks": [{"name": "hook.example.com", "clientConfig": by_url, "interpreterContextVersions": ["v1alpha1"]}],
        });
        succeed(&self.client, "POST", INTERPRETERS, Some(&interpreter)).await?;
        let mut crd = foreign::crd("remote.example.com/v1", "Gadget", "gadgets", true);
        crd["metadata"]["annotations"] = asking;
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": by_service},
        });
        succeed(&self.client, "POST", CRDS, Some(&crd)).await?;
        Ok(())
    }

    /// Reads the CA bundles of the targets.
    pub(super) async fn ca_bundles(&self) -> anyhow::Result<Vec<String>> {
        let mut carried = Vec::new();
        for (path, pointer) in targets() {
            let target = get(&self.client, &path).await?.context("gone")?;
            carried.push(text(&target, pointer).to_owned());
        }
        Ok(carried)
    }

    /// Waits until all targets have `ca.crt` of the Secret at `path`.
    pub(super) async fn wait_for_ca_bundles(&self, client: &Client, path: &str) -> anyhow::Result<String> {
        self.wait_for_new_ca_bundles(client, path, "").await
    }

    /// Waits until `ca.crt` of the Secret at `path` differs from `before`, and all targets have it.
    pub(super) async fn wait_for_new_ca_bundles(
        &self,
        client: &Client,
        path: &str,
        before: &str,
    ) -> anyhow::Result<String> {
        until("the targets have the trust bundle", PATIENCE, async || {
            let secret = get(client, path).await?.unwrap_or_default();
            let trust = text(&secret, "/data/ca.crt").to_owned();
            let carried = self.ca_bundles().await?;
            let is_there = trust != before && carried.iter().all(|bundle| *bundle == trust);
            Ok(check(is_there, || format!("{carried:?}")).map(|()| trust))
        })
        .await
    }
}

/// Returns the role of the account in the second cluster.
pub(super) fn role(verbs: &[&str]) -> Value {
    let rules: Vec<_> = windlass_trust::injection::KINDS
        .iter()
        .map(|kind| json!({"apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs}))
        .collect();
    json!({"metadata": {"name": ACCOUNT}, "rules": rules})
}

/// Returns the paths of the targets, and the JSON pointers to their CA bundles.
fn targets() -> [(String, &'static str); 3] {
    [
        (
            format!("{VALIDATING}/remote"),
            "/webhooks/0/clientConfig/caBundle",
        ),
        (
            format!("{INTERPRETERS}/remote"),
            "/webhooks/0/clientConfig/caBundle",
        ),
        (
            format!("{CRDS}/gadgets.remote.example.com"),
            "/spec/conversion/webhook/clientConfig/caBundle",
        ),
    ]
}

pub(super) fn secrets() -> String {
    format!("/api/v1/namespaces/{}/secrets", operator::NAMESPACE)
}

/// Returns a Secret with a kubeconfig in the format of Karmada.
pub(super) fn secret(kubeconfig: &str) -> Value {
    json!({"metadata": {"name": SECRET}, "data": {"karmada.config": STANDARD.encode(kubeconfig)}})
}

/// Returns the operator with the option for the second cluster.
pub(super) fn remote_operator(cluster: &TestCluster) -> OperatorProcess {
    let mut operator = cluster.operator.clone();
    operator.arguments.push(format!(
        "--remote-kubeconfig-secret={}/{SECRET}",
        operator::NAMESPACE
    ));
    operator
}

/// Waits until the ServingCertificate at `path` has a condition with this reason, and returns its message.
pub(super) async fn wait_for_condition(
    client: &Client,
    path: &str,
    condition: &str,
    reason: &str,
) -> anyhow::Result<String> {
    until(&format!("{path}: {reason}"), PATIENCE, async || {
        let certificate = get(client, path).await?.context("gone")?;
        let found = ["True", "False", "Unknown"]
            .iter()
            .filter_map(|status| current(&certificate, condition, status))
            .find(|found| found["reason"] == reason);
        Ok(found
            .map(|found| text(found, "/message").to_owned())
            .ok_or_else(|| conditions(&certificate)))
    })
    .await
}

/// Waits for an event about the Secret with these words.
pub(super) async fn wait_for_event(client: &Client, reason: &str, words: &str) -> anyhow::Result<()> {
    let events = format!("/apis/events.k8s.io/v1/namespaces/{}/events", operator::NAMESPACE);
    until(
        &format!("there is an event with {words:?}"),
        PATIENCE,
        async || {
            let events = list(client, &events).await?;
            let is_reported = events.iter().any(|event| {
                event["regarding"]["name"] == SECRET
                    && event["reason"] == reason
                    && text(event, "/note").contains(words)
            });
            Ok(check(is_reported, || format!("{events:?}")))
        },
    )
    .await
}
