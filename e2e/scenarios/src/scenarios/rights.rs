//! Permissions that no other scenario needs.

use std::{fs, path::PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use windlass_bundle::{BundledKind, Phase};

use super::{foreign, upgrade};
use crate::{
    proxy::FailedRequest,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, PATIENCE, conditions, current, delete, get, gone, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The sample bundle for its own namespace, which contains a Role.
const BUNDLE: &str = "own-namespace";

/// The namespace of the install.
const NAMESPACE: &str = "own-system";

/// The annotation of bundled objects with the revision of the bundle.
const REVISION: &str = "example.com/revision";

/// A kind that bundles may contain, with an object.
pub(super) struct Bundled {
    kind: BundledKind,
    /// The object without its metadata; `None` for kinds that accept any fields.
    content: Option<Value>,
}

impl Bundled {
    /// The name of the object, and of all that it refers to.
    const NAME: &str = "bundled";

    fn name(&self) -> &'static str {
        match self.kind.kind {
            "APIService" => "v1.bundled.example.com",
            _ => Self::NAME,
        }
    }

    fn object(&self, revision: &str) -> Value {
        let mut object = json!({
            "apiVersion": self.kind.api_version, "kind": self.kind.kind,
            "metadata": {"name": self.name(), "annotations": {REVISION: revision}},
        });
        let anything = json!({"spec": {"text": "anything"}});
        json_patch::merge(&mut object, self.content.as_ref().unwrap_or(&anything));
        object
    }

    /// Creates the CRD of an optional kind.
    pub(super) async fn define(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        if !self.kind.optional {
            return Ok(());
        }
        let kind = self.kind;
        let crd = foreign::crd(kind.api_version, kind.kind, kind.plural, kind.namespaced);
        foreign::define(&cluster.client, &crd).await
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    pub(super) fn collection(&self) -> String {
        let BundledKind {
            api_version, plural, ..
        } = self.kind;
        let root = if self.kind.group().is_empty() {
            "/api"
        } else {
            "/apis"
        };
        let namespace = if self.kind.namespaced {
            format!("/namespaces/{NAMESPACE}")
        } else {
            String::new()
        };
        format!("{root}/{api_version}{namespace}/{plural}")
    }
}

pub(super) fn every_kind() -> Vec<Bundled> {
    BundledKind::ALL
        .map(|kind| Bundled {
            kind,
            content: content(kind.kind),
        })
        .into()
}

/// Returns an object without its metadata, if the kind has a fixed schema or calls the sample.
fn content(kind: &str) -> Option<Value> {
    let rules = json!([{"apiGroups": ["example.com"], "resources": ["nothings"], "verbs": ["get"]}]);
    let binding = |kind: &str| {
        json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": Bundled::NAME},
               "subjects": [{"kind": "ServiceAccount", "name": Bundled::NAME, "namespace": NAMESPACE}]})
    };
    let selector = json!({"matchLabels": {"app": "none"}});
    let ports = json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]);
    let service = json!({"namespace": NAMESPACE, "name": "sample-operator-service", "port": 443});
    Some(match kind {
        "ExtensionConfig" => json!({"spec": {"clientConfig": {"service": service}}}),
        "APIService" => json!({"spec": {
            "group": "bundled.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": service,
        }}),
        "ServiceAccount" => json!({}),
        "Role" | "ClusterRole" => json!({"rules": rules}),
        "RoleBinding" => binding("Role"),
        "ClusterRoleBinding" => binding("ClusterRole"),
        "ConfigMap" => json!({"data": {"key": "value"}}),
        "Secret" => json!({"type": "Opaque", "data": {"key": "dmFsdWU="}}),
        "Service" => json!({"spec": {"ports": ports, "selector": {"app": "none"}}}),
        "PodDisruptionBudget" => json!({"spec": {"minAvailable": 1, "selector": selector}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": selector, "policyTypes": ["Ingress"]}}),
        "PriorityClass" => json!({"value": 1000, "description": "unused"}),
        _ => return None,
    })
}

/// Adds the bundle with an object of each kind, all with this revision.
pub(super) fn add_bundle(
    cluster: &TestCluster,
    kinds: &[Bundled],
    revision: &str,
) -> anyhow::Result<PathBuf> {
    let bundle = cluster.add_bundle(&crate::sample::bundle(BUNDLE), revision)?;
    for bundled in kinds {
        let file = bundle
            .join("manifests")
            .join(format!("{}.json", bundled.kind.plural));
        fs::write(file, bundled.object(revision).to_string())?;
    }
    Ok(bundle)
}

pub(super) fn bundle_deployment(directory: &str) -> Value {
    let mut object = steps::bundle_deployment("own", NAMESPACE, directory);
    object["spec"]["watchNamespaces"] = json!([NAMESPACE]);
    object
}

pub(super) async fn every_bundled_kind_is_created_updated_and_deleted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let kinds = every_kind();
    for bundled in &kinds {
        bundled.define(cluster).await?;
    }
    let (operator, gate) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    add_bundle(cluster, &kinds, "one")?;
    succeed(
        &cluster.client,
        "POST",
        BUNDLE_DEPLOYMENTS,
        Some(&bundle_deployment("one")),
    )
    .await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    let mut before = Vec::new();
    for kind in &kinds {
        before.push(installed_object(cluster, kind, "one").await?);
    }
    add_bundle(cluster, &kinds, "two")?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/own");
    let patch = json!({"spec": {"source": {"directory": {"path": "two"}}}});
    succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    for (kind, before) in kinds.iter().zip(&before) {
        let after = installed_object(cluster, kind, "two").await?;
        anyhow::ensure!(
            before["metadata"]["uid"] == after["metadata"]["uid"],
            "{} was recreated",
            kind.path()
        );
    }
    for kind in &kinds {
        let write = format!("PATCH {}", kind.path());
        let writes = gate.log().iter().filter(|line| **line == write).count();
        // A caller is created, claimed by an apply, and then its managed fields of the creation are removed.
        let expected = if kind.kind.phase == Phase::Callers { 3 } else { 2 };
        // kube-aggregator writes the status of an APIService right after its creation, which can reorder the
        // managed fields. A patch of them that is refused (422) changes nothing.
        let is_refused = |failed: &FailedRequest| {
            kind.kind.kind == "APIService"
                && failed.code == 422
                && (&*failed.right.resource, &*failed.right.verb) == (kind.kind.plural, "patch")
        };
        let failures = gate.failures();
        let refused = failures.iter().filter(|(failed, _)| is_refused(failed));
        let refused: u64 = refused.map(|(_, count)| count).sum();
        anyhow::ensure!(
            writes as u64 - refused == expected,
            "{write} was sent {writes} times, of which {refused} were refused, for 2 revisions"
        );
    }
    delete(&cluster.client, &path).await?;
    for kind in &kinds {
        gone(&cluster.client, &kind.path()).await?;
    }
    Ok(())
}

async fn installed_object(cluster: &TestCluster, kind: &Bundled, revision: &str) -> anyhow::Result<Value> {
    let path = kind.path();
    let object = get(&cluster.client, &path)
        .await?
        .with_context(|| format!("{path} does not exist"))?;
    let metadata = &object["metadata"];
    anyhow::ensure!(
        metadata["annotations"][REVISION] == revision
            && metadata["labels"]["windlass.dev/bundle-deployment"] == "own",
        "{path} is not of revision {revision}: {metadata}"
    );
    Ok(object)
}

/// Kubernetes rejects a grant of permissions that the client lacks, unless it may `escalate` the role or
/// `bind` it. Without both, the operator cannot grant the permissions in the bundled roles. Each verb is
/// needed and sufficient for its resource.
pub(super) async fn the_operator_grants_only_what_it_is_permitted_to_grant(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let kinds: Vec<_> = every_kind()
        .into_iter()
        .filter(|kind| ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"].contains(&kind.kind.kind))
        .collect();
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";
    let rules = get(&cluster.client, role).await?.context("no ClusterRole")?["rules"].clone();
    let needs = [
        ("escalate", "roles", "roles"),
        ("escalate", "clusterroles", "clusterroles"),
        ("bind", "roles", "rolebindings"),
        ("bind", "clusterroles", "clusterrolebindings"),
    ];
    let withhold = async |withheld: &[(&str, &str, &str)]| {
        let left = json!({"rules": without_verbs(&rules, withheld)});
        succeed(&cluster.client, "PATCH", role, Some(&left)).await
    };
    withhold(&needs).await?;
    let _operator = cluster.operator.start()?;
    // Namespaced objects are validated before the install only if the namespace exists.
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    add_bundle(cluster, &kinds, "one")?;
    succeed(
        &cluster.client,
        "POST",
        BUNDLE_DEPLOYMENTS,
        Some(&bundle_deployment("one")),
    )
    .await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/own");
    for (position, (verb, of, refused)) in needs.iter().enumerate() {
        let refusal = format!(" {refused}.rbac.authorization.k8s.io");
        let what = format!("{refused} are refused without the verb {verb} on {of}");
        until(&what, PATIENCE, async || {
            let object = get(&cluster.client, &path)
                .await?
                .context("the BundleDeployment was deleted")?;
            let words = conditions(&object);
            // A binding cannot be validated before its role exists.
            let is_reported = ["Accepted=False DryRunRefused", "Installed=False Forbidden"]
                .iter()
                .any(|reason| words.contains(reason));
            let expected = [refusal.as_str(), "attempting to grant RBAC permissions"];
            Ok(
                if is_reported && expected.iter().all(|part| words.contains(part)) {
                    Ok(())
                } else {
                    Err(words)
                },
            )
        })
        .await?;
        withhold(&needs[position + 1..]).await?;
    }
    ready(&cluster.client, "own", PATIENCE).await?;
    for kind in &kinds {
        installed_object(cluster, kind, "one").await?;
    }
    Ok(())
}

/// The API server probes the webhooks through an object of Windlass, which is left if it cannot be deleted.
pub(super) async fn armed_webhooks_are_reported_although_the_probe_cannot_be_deleted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";
    let rules = get(&cluster.client, role).await?.context("no ClusterRole")?["rules"].clone();
    let configurations = "validatingwebhookconfigurations";
    let left = json!({"rules": without_verbs(&rules, &[("delete", configurations, "")])});
    succeed(&cluster.client, "PATCH", role, Some(&left)).await?;
    let _operator = cluster.operator.start()?;
    cluster.bundle("sample.v1")?;
    let object = steps::bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let object = upgrade::wait_until_stopped(
        cluster,
        "Retrying",
        "delete ValidatingWebhookConfiguration windlass-probe-sample-",
    )
    .await?;
    anyhow::ensure!(
        current(&object, "Armed", "True").is_some() && object["status"]["installed"]["name"] == "sample.v1",
        "the armed webhooks are not reported: {}",
        conditions(&object)
    );
    succeed(&cluster.client, "PATCH", role, Some(&json!({ "rules": rules }))).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// Returns `rules` without some verbs (the first) on some resources (the second).
fn without_verbs(rules: &Value, withheld: &[(&str, &str, &str)]) -> Vec<Value> {
    let mut left = Vec::new();
    for rule in rules.as_array().into_iter().flatten() {
        for resource in rule["resources"].as_array().into_iter().flatten() {
            let mut rule = rule.clone();
            rule["resources"] = json!([resource]);
            if let Some(verbs) = rule["verbs"].as_array_mut() {
                verbs.retain(|verb| {
                    !withheld
                        .iter()
                        .any(|(withheld, of, _)| verb == withheld && resource == of)
                });
            }
            left.push(rule);
        }
    }
    left
}
