//! A cold start where nothing of what others serve can be listed: what does not need it goes on.

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

/// The role of the operator.
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";

/// The group of kinds that the operator may not list.
const FORBIDDEN: &str = "monitoring.coreos.com";

/// The version in which objects are stored that nobody converts.
const STORED: &str = "v0";

/// A kind of others.
struct Optional {
    api_version: String,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
}

// === impl Optional ===

impl Optional {
    /// All that the operator watches: targets, and what bundles may bring along.
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

    /// Has it served, and unreadable: its only object is stored in another version, and who would convert it is not there.
    async fn break_it(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let mut crd = foreign::crd(&self.api_version, self.kind, self.plural, self.namespaced);
        let served = crd["spec"]["versions"][0]["name"].take();
        let served = served.as_str().context("no version")?;
        crd["spec"]["versions"] = json!([version(STORED, true), version(served, false)]);
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {"namespace": "nowhere", "name": "nobody", "port": 443},
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

    /// Takes the need for a conversion away.
    async fn mend(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let patch = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        succeed(&cluster.client, "PATCH", &self.definition(), Some(&patch)).await?;
        Ok(())
    }

    /// How the operator names it.
    fn shown(&self) -> String {
        format!("[-]{}, Kind={}", self.api_version, self.kind)
    }
}

pub(super) async fn a_cold_start_with_every_optional_kind_broken(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let kinds = Optional::all();
    for kind in &kinds {
        kind.break_it(cluster).await?;
    }
    let rules = get(&cluster.client, ROLE).await?.context("no ClusterRole")?["rules"].clone();
    let fewer = json!({"rules": without_forbidden(&rules)});
    succeed(&cluster.client, "PATCH", ROLE, Some(&fewer)).await?;
    let operator = cluster.operator.start()?;
    until("the operator leads", PATIENCE, async || {
        Ok(check(operator.leads().await?, || "somebody else".to_owned()))
    })
    .await?;
    // Each kind has half a minute to be listed.
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
        anyhow::ensure!(health.contains(&kind.shown()), "no {} in {health}", kind.shown());
    }
    anyhow::ensure!(health.contains("forbidden"), "no reason in {health}");

    install_without_interpreters(cluster).await?;
    is_repaired(cluster).await?;
    let certificate = renewed(cluster).await?;
    let trusted = current(&certificate, "Trusted", "True").context("its trust is not known")?;
    anyhow::ensure!(
        trusted["reason"] == "TargetsUnlisted",
        "nothing is said of targets that are not seen: {trusted}"
    );

    for kind in &kinds {
        kind.mend(cluster).await?;
    }
    succeed(&cluster.client, "PATCH", ROLE, Some(&json!({ "rules": rules }))).await?;
    all_are_listed(&operator).await?;
    sample::settled(cluster).await?;
    sample::rotate(cluster, "ca").await
}

/// Installs the sample. Nobody knows who interprets its objects: that is said, and all is done that does not need it.
async fn install_without_interpreters(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    cluster.bundle("sample.v1")?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
    until("it is said whom nobody knows", PATIENCE, async || {
        let deployment = get(client, &path).await?.context("no BundleDeployment")?;
        let available = current(&deployment, "Available", "Unknown");
        let message = available.map(|condition| text(condition, "/message"));
        let is_said = message
            .is_some_and(|message| message.ends_with("from listing ResourceInterpreterWebhookConfiguration"));
        Ok(check(is_said, || deployment["status"].to_string()))
    })
    .await?;
    condition(client, &path, "Armed", "True", PATIENCE).await?;

    let switch = json!({"spec": {"interpretation": "Disabled"}});
    succeed(client, "PATCH", &path, Some(&switch)).await?;
    ready(client, "sample", PATIENCE).await?;
    Ok(())
}

/// Somebody takes the trust bundle from a target: it is given back.
async fn is_repaired(cluster: &TestCluster) -> anyhow::Result<()> {
    let trust = sample::trust_bundle(cluster).await?;
    let hooks = list(&cluster.client, VALIDATING).await?;
    let hooks = hooks.first().context("no configuration")?;
    let path = format!("{VALIDATING}/{}", text(hooks, "/metadata/name"));
    let pointer = "/webhooks/0/clientConfig/caBundle";
    let stranger = foreign::trust_bundle()?;
    let patch = json!([{"op": "replace", "path": pointer, "value": stranger}]);
    succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    drift::carries(cluster, &path, pointer, &trust).await
}

/// Has another serving certificate issued, which every endpoint comes to serve; that of its CA waits for every target.
async fn renewed(cluster: &TestCluster) -> anyhow::Result<Value> {
    let issued = async || {
        let secret = get(&cluster.client, sample::SERVING_SECRET).await?;
        anyhow::Ok(secret.unwrap_or_default()["data"]["tls.crt"].take())
    };
    let before = issued().await?;
    sample::request_rotation(cluster, "leaf").await?;
    until("another certificate is served", PATIENCE, async || {
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

/// What was refused is asked for again later and later.
async fn all_are_listed(operator: &Running) -> anyhow::Result<()> {
    until("every kind is listed", PATIENCE * 5, async || {
        let answer = operator.ask("/readyz?verbose").await?;
        Ok(check(!answer.contains("[-]"), || answer.clone()))
    })
    .await
}

/// `rules` without those for the group that must not be listed, and without the one for every group, in the place of which
/// comes one for the sample's.
fn without_forbidden(rules: &Value) -> Vec<Value> {
    let mut left = rules.as_array().cloned().unwrap_or_default();
    left.retain(|rule| rule["apiGroups"] != json!([FORBIDDEN]) && rule["apiGroups"] != json!(["*"]));
    left.push(json!({"apiGroups": [sample::GROUP], "resources": ["*"], "verbs": ["list"]}));
    left
}
