//! A cold start in a cluster where no optional kind can be listed: only work that needs these kinds waits.

use anyhow::Context;
use serde_json::{Value, json};
use windlass_bundle::BundledKind;
use windlass_trust::injection::{KINDS, TargetKind};

use super::{
    drift,
    foreign::{self, version},
};
use crate::{
    operator::Running,
    request::text,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, CRDS, PATIENCE, VALIDATING, bundle_deployment, check, condition, current, get,
        list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The operator's ClusterRole.
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";

/// The API group that the operator is not allowed to list.
const FORBIDDEN: &str = "monitoring.coreos.com";

/// The storage version, which no webhook converts.
const STORED: &str = "v0";

/// A kind that the cluster may lack.
struct OptionalKind {
    api_version: String,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
}

impl OptionalKind {
    /// Returns the optional kinds that the operator watches: targets, and kinds in bundles.
    fn all() -> Vec<Self> {
        let is_of_others = |kind: &&TargetKind| !kind.group.is_empty() && !kind.group.ends_with(".k8s.io");
        let targets = KINDS.iter().filter(is_of_others).map(|kind| Self {
            api_version: kind.api_version(),
            kind: &kind.kind,
            plural: &kind.plural,
            namespaced: false,
        });
        let is_target = |kind: &BundledKind| KINDS.iter().any(|target| target.kind == kind.kind);
        let bundled = BundledKind::ALL
            .into_iter()
            .filter(|kind| kind.optional && !is_target(kind));
        let bundled = bundled.map(|kind| Self {
            api_version: kind.api_version.to_owned(),
            kind: kind.kind,
            plural: kind.plural,
            namespaced: kind.namespaced,
        });
        targets.chain(bundled).collect()
    }

    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    fn definition(&self) -> String {
        format!("{CRDS}/{}.{}", self.plural, self.group())
    }

    /// Creates the CRD so that lists fail: its only object is stored in another version, and the conversion
    /// webhook does not exist.
    async fn create_unlistable(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let mut crd = foreign::crd(&self.api_version, self.kind, self.plural, self.namespaced);
        let served = crd["spec"]["versions"][0]["name"].take();
        let served = served.as_str().context("no version")?;
        crd["spec"]["versions"] = json!([version(STORED, true), version(served, false)]);
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {"namespace": "nowhere", "name": "missing", "port": 443},
                "caBundle": foreign::trust_bundle()?,
            },
        }});
        foreign::define(&cluster.client, &crd).await?;
        let place = if self.namespaced {
            "namespaces/default/"
        } else {
            ""
        };
        let collection = format!("/apis/{}/{STORED}/{place}{}", self.group(), self.plural);
        let object = json!({
            "apiVersion": format!("{}/{STORED}", self.group()), "kind": self.kind, "metadata": {"name": "stored"},
        });
        succeed(&cluster.client, "POST", &collection, Some(&object)).await?;
        Ok(())
    }

    /// Removes the conversion webhook, so that lists succeed.
    async fn repair(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let patch = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        succeed(&cluster.client, "PATCH", &self.definition(), Some(&patch)).await?;
        Ok(())
    }

    /// Returns the line of the readiness check that reports this kind as not synced.
    fn readiness_line(&self) -> String {
        format!("[-]{}, Kind={}", self.api_version, self.kind)
    }
}

pub(super) async fn the_operator_starts_without_any_optional_kind(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let kinds = OptionalKind::all();
    for kind in &kinds {
        kind.create_unlistable(cluster).await?;
    }
    let rules = get(&cluster.client, ROLE).await?.context("no ClusterRole")?["rules"].clone();
    let fewer = json!({"rules": without_forbidden(&rules)});
    succeed(&cluster.client, "PATCH", ROLE, Some(&fewer)).await?;
    let operator = cluster.operator.start()?;
    until("the operator is the leader", PATIENCE, async || {
        Ok(check(operator.leads().await?, || "not the leader".to_owned()))
    })
    .await?;
    // The operator waits half a minute for the list of each kind.
    let health = until("the operator is ready", PATIENCE * 2, async || {
        let answer = operator.ask("/readyz?verbose").await?;
        Ok(if answer.contains("readyz check passed") {
            Ok(answer)
        } else {
            Err(answer)
        })
    })
    .await?;
    for kind in &kinds {
        anyhow::ensure!(
            health.contains(&kind.readiness_line()),
            "no {} in {health}",
            kind.readiness_line()
        );
    }
    anyhow::ensure!(health.contains("forbidden"), "no reason in {health}");

    install_without_interpreters(cluster).await?;
    check_repair(cluster).await?;
    let certificate = renew_certificate(cluster).await?;
    let trusted = current(&certificate, "Trusted", "True").context("no condition Trusted")?;
    anyhow::ensure!(
        trusted["reason"] == "TargetsUnlisted",
        "the condition does not report unlisted targets: {trusted}"
    );

    for kind in &kinds {
        kind.repair(cluster).await?;
    }
    succeed(&cluster.client, "PATCH", ROLE, Some(&json!({ "rules": rules }))).await?;
    wait_until_all_listed(&operator).await?;
    sample::settled(cluster).await?;
    sample::rotate(cluster, "ca").await
}

/// Installs the sample. The install completes, but its health is unknown until interpretations can be listed.
async fn install_without_interpreters(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    cluster.bundle("sample.v1")?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
    until(
        "the condition reports that interpretations cannot be listed",
        PATIENCE,
        async || {
            let deployment = get(client, &path).await?.context("no BundleDeployment")?;
            let available = current(&deployment, "Available", "Unknown");
            let message = available.map(|condition| text(condition, "/message"));
            let is_reported = message.is_some_and(|message| {
                message.ends_with("cannot list ResourceInterpreterWebhookConfiguration")
            });
            Ok(check(is_reported, || deployment["status"].to_string()))
        },
    )
    .await?;
    condition(client, &path, "Armed", "True", PATIENCE).await?;

    let switch = json!({"spec": {"interpretation": "Disabled"}});
    succeed(client, "PATCH", &path, Some(&switch)).await?;
    ready(client, "sample", PATIENCE).await?;
    Ok(())
}

/// Removes the trust bundle from a target and waits until it is restored.
async fn check_repair(cluster: &TestCluster) -> anyhow::Result<()> {
    let trust = sample::trust_bundle(cluster).await?;
    let hooks = list(&cluster.client, VALIDATING).await?;
    let hooks = hooks.first().context("no configuration")?;
    let path = format!("{VALIDATING}/{}", text(hooks, "/metadata/name"));
    let pointer = "/webhooks/0/clientConfig/caBundle";
    let stranger = foreign::trust_bundle()?;
    let patch = json!([{"op": "replace", "path": pointer, "value": stranger}]);
    succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    drift::wait_for_bundle(cluster, &path, pointer, &trust).await
}

/// Waits until all endpoints serve a new serving certificate. A new CA would wait for all targets.
async fn renew_certificate(cluster: &TestCluster) -> anyhow::Result<Value> {
    let issued = async || {
        let secret = get(&cluster.client, sample::SERVING_SECRET).await?;
        anyhow::Ok(secret.unwrap_or_default()["data"]["tls.crt"].take())
    };
    let before = issued().await?;
    sample::request_rotation(cluster, "leaf").await?;
    until("all endpoints serve the new certificate", PATIENCE, async || {
        let certificate = get(&cluster.client, sample::SERVING_CERTIFICATE).await?;
        let certificate = certificate.context("no ServingCertificate")?;
        let endpoints = &certificate["status"]["endpoints"];
        let is_served = issued().await? != before && endpoints["current"] == endpoints["ready"];
        Ok(if is_served {
            Ok(certificate)
        } else {
            Err(certificate["status"].to_string())
        })
    })
    .await
}

/// Waits longer than the backoff between failed lists.
async fn wait_until_all_listed(operator: &Running) -> anyhow::Result<()> {
    until("every kind is listed", PATIENCE * 5, async || {
        let answer = operator.ask("/readyz?verbose").await?;
        Ok(check(!answer.contains("[-]"), || answer.clone()))
    })
    .await
}

/// Removes the rules for the forbidden group and for all groups, and adds one for the group of the sample.
fn without_forbidden(rules: &Value) -> Vec<Value> {
    let mut left = rules.as_array().cloned().unwrap_or_default();
    left.retain(|rule| rule["apiGroups"] != json!([FORBIDDEN]) && rule["apiGroups"] != json!(["*"]));
    left.push(json!({"apiGroups": [sample::GROUP], "resources": ["*"], "verbs": ["list"]}));
    left
}
