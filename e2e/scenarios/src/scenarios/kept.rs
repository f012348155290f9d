//! The installed revision is kept whatever becomes of the next one.

use std::{fs, path::Path, time::Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::{traffic, upgrade};
use crate::{
    load::Load,
    request::{send, text},
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, VALIDATING, check, conditions, current, get, list, ready, succeed,
        until,
    },
    test_cluster::TestCluster,
};

const PODS: &str = "/api/v1/namespaces/sample-system/pods";

const CLUSTER_ROLES: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=windlass.dev%2Fbundle-deployment%3Dsample";

pub(super) async fn the_installed_revision_is_kept_while_the_next_is_refused(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    bring_unserved_kind(&cluster.bundle("sample.v2")?)?;
    sample::install(cluster, "sample.v2").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1", "v2"]).await?;
    load.at_least(50).await?;
    cluster.bundle("sample.v1")?;
    sample::set_source(cluster, "sample.v1").await?;
    upgrade::stopped(cluster, "Downgrade", "older than the installed sample.v2").await?;
    is_kept(cluster, &load, "Downgrade").await?;

    // One that is no bundle at all.
    sample::set_source(cluster, invalid(cluster)?).await?;
    let refused = upgrade::stopped(cluster, "BundleInvalid", "missing").await?;
    anyhow::ensure!(
        text(&refused, "/status/next/reason") == "BundleInvalid"
            && text(&refused, "/status/installed/name") == "sample.v2",
        "{}",
        refused["status"]
    );
    is_kept(cluster, &load, "BundleInvalid").await?;

    // Nothing to be read at all, neither of the next one nor of the installed one.
    fs::remove_dir_all(cluster.operator.bundle_dir.join("sample.v2"))?;
    sample::set_source(cluster, "nowhere").await?;
    upgrade::stopped(cluster, "SourceInvalid", "cannot be read").await?;
    is_kept(cluster, &load, "SourceInvalid").await?;
    load.stop().await;
    Ok(())
}

pub(super) async fn the_installed_revision_is_kept_while_the_next_is_stuck(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    bring_unserved_kind(&cluster.bundle("sample.v1")?)?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let broken = upgrade::broken(cluster, "crash")?;
    for (canary, reason) in [(true, "CanaryCrashing"), (false, "RollingOut")] {
        let config = json!({"spec": {"config": {"windlass": {"canary": canary}}}});
        succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&config)).await?;
        sample::set_source(cluster, &broken).await?;
        upgrade::stopped(cluster, reason, "exit code 1").await?;
        stays_whole(cluster, &load).await?;
        is_told(cluster, reason).await?;
        sample::set_source(cluster, "sample.v1").await?;
    }
    load.stop().await;
    Ok(())
}

/// What has begun has changed the CRD, so that nothing goes back by itself.
pub(super) async fn the_installed_revision_is_kept_beside_what_began_and_is_refused_now(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let broken = json!({"spec": {
        "source": {"directory": {"path": upgrade::broken(cluster, "crash")?}},
        "config": {"windlass": {"canary": false}},
    }});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&broken)).await?;
    upgrade::stopped(cluster, "RollingOut", "exit code 1").await?;
    let versions = sample::crd(cluster).await?["spec"]["versions"].clone();
    let has_begun = versions
        .as_array()
        .is_some_and(|all| all.iter().any(|version| version["name"] == "v2"));
    anyhow::ensure!(has_begun, "the CRD is as it was: {versions}");

    sample::set_source(cluster, invalid(cluster)?).await?;
    upgrade::stopped(cluster, "BundleInvalid", "missing").await?;
    is_whole(cluster).await?;
    ready_pods(cluster).await?;
    let versions = sample::crd(cluster).await?["spec"]["versions"].clone();
    anyhow::ensure!(
        versions.to_string().contains("\"v2\""),
        "what has begun was undone: {versions}"
    );
    // It goes on from there.
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// Takes each object of the installed revision away in turn. It comes back while the next one is refused for `reason`, and
/// the status says of both how they are.
pub(super) async fn is_kept(cluster: &TestCluster, load: &Load, reason: &str) -> anyhow::Result<()> {
    stays_whole(cluster, load).await?;
    is_told(cluster, reason).await?;
    let object = deployment(cluster).await?;
    anyhow::ensure!(
        current(&object, "Accepted", "True").is_none(),
        "{}",
        conditions(&object)
    );
    Ok(())
}

/// Waits until the status says of the installed revision that it works, and why the next one does not go on.
async fn is_told(cluster: &TestCluster, reason: &str) -> anyhow::Result<()> {
    until("the status tells the two apart", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let holds = |condition: &str| current(&object, condition, "True").is_some();
        let is_refused = current(&object, "Ready", "False").is_some_and(|ready| ready["reason"] == reason);
        let is_told = holds("Available")
            && holds("Armed")
            && is_refused
            && object["status"]["installed"]["healthy"] == true
            && object["status"]["next"]["reason"] == reason;
        Ok(check(is_told, || object["status"].to_string()))
    })
    .await
}

/// Takes each object of the installed revision away in turn, again and again for as long as such a revision is watched.
/// Whoever deletes what is called fails calls; it comes back each time, and no other call fails.
async fn stays_whole(cluster: &TestCluster, load: &Load) -> anyhow::Result<()> {
    let (started, duration) = (Instant::now(), upgrade::watched_for()?);
    let selector = selector(cluster).await?;
    let (mut rounds, mut requests) = (0, 0);
    loop {
        load.at_least(50).await?;
        let outside = load.lap();
        outside.check()?;
        requests += outside.requests;
        if rounds > 0 && started.elapsed() >= duration {
            break;
        }
        is_whole(cluster).await?;
        ready_pods(cluster).await?;
        anyhow::ensure!(
            self::selector(cluster).await? == selector,
            "the Service leads elsewhere than before"
        );
        load.at_least(50).await?;
        drop(load.lap());
        rounds += 1;
    }
    tracing::info!(rounds, requests, seconds = started.elapsed().as_secs(), "Kept");
    Ok(())
}

/// Takes each object of the installed revision away in turn, and waits until it is back.
pub(super) async fn is_whole(cluster: &TestCluster) -> anyhow::Result<()> {
    let roles = list(&cluster.client, CLUSTER_ROLES).await?;
    let role = roles.first().context("no ClusterRole")?;
    let role = format!(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/{}",
        text(role, "/metadata/name")
    );
    let webhooks = list(&cluster.client, VALIDATING).await?;
    let webhook = webhooks
        .iter()
        .find(|webhook| text(webhook, "/metadata/name").contains("vwidget"))
        .context("no ValidatingWebhookConfiguration")?;
    let webhook = format!("{VALIDATING}/{}", text(webhook, "/metadata/name"));
    for path in [sample::SERVICE, sample::DEPLOYMENT, &role, &webhook] {
        let before = get(&cluster.client, path)
            .await?
            .with_context(|| format!("no {path}"))?;
        succeed(&cluster.client, "DELETE", path, None).await?;
        until(&format!("{path} is back"), PATIENCE, async || {
            let uid = &before["metadata"]["uid"];
            let there = get(&cluster.client, path).await?;
            let is_back = there.is_some_and(|there| there["metadata"]["uid"] != *uid);
            Ok(if is_back {
                Ok(())
            } else {
                Err(conditions(&deployment(cluster).await?))
            })
        })
        .await?;
    }
    keeps_its_conversion(cluster).await
}

/// Takes the conversion of the CRD away, points it elsewhere, and replaces the CRD by one without our marks; each time waits
/// until all is back.
async fn keeps_its_conversion(cluster: &TestCluster) -> anyhow::Result<()> {
    let service = |crd: &Value| crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"].clone();
    let called = service(&sample::crd(cluster).await?);
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let path = json!({"webhook": {"clientConfig": {"service": {"path": "/elsewhere"}}}});
    let other = json!({"webhook": {"clientConfig": {"service": {"name": "metrics"}}}});
    let changes = [
        ("PATCH", none),
        ("PATCH", json!({"spec": {"conversion": path}})),
        ("PATCH", json!({"spec": {"conversion": other}})),
        ("PUT", json!({"conversion": {"strategy": "None"}})),
    ];
    for (method, change) in changes {
        until("the conversion is changed", PATIENCE, async || {
            let mut body = change.clone();
            if method == "PUT" {
                // What `kubectl replace` sends of the author's manifest.
                body = sample::crd(cluster).await?;
                body["spec"]["conversion"] = change["conversion"].clone();
                if let Some(metadata) = body["metadata"].as_object_mut() {
                    metadata.retain(|field, _| ["name", "resourceVersion"].contains(&field.as_str()));
                }
            }
            let answer = send(&cluster.client, method, sample::DEFINITION, Some(&body)).await?;
            Ok(check(answer.code == 200, || answer.to_string()))
        })
        .await?;
        until(
            &format!("the conversion is back after {change}"),
            PATIENCE,
            async || {
                let crd = sample::crd(cluster).await?;
                let metadata = &crd["metadata"];
                let is_back = service(&crd) == called
                    && metadata["labels"]["windlass.dev/bundle-deployment"] == "sample"
                    && !metadata["annotations"]["windlass.dev/inject-ca-from"].is_null();
                Ok(if is_back {
                    Ok(())
                } else {
                    Err(conditions(&deployment(cluster).await?))
                })
            },
        )
        .await?;
    }
    Ok(())
}

/// Waits until pods of the installed revision answer again, and those that were deleted have closed their connections.
async fn ready_pods(cluster: &TestCluster) -> anyhow::Result<()> {
    until("the installed revision is available", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let works = object["status"]["installed"]["healthy"] == true
            && current(&object, "Available", "True").is_some()
            && current(&object, "Armed", "True").is_some();
        Ok(check(works, || conditions(&object)))
    })
    .await?;
    until("the deleted pods are gone", PATIENCE, async || {
        let pods = list(&cluster.client, PODS).await?;
        let mut ending = pods
            .iter()
            .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        Ok(ending
            .next()
            .map_or(Ok(()), |pod| Err(text(pod, "/metadata/name").to_owned())))
    })
    .await
}

/// The pods that the Service of the installed revision selects.
async fn selector(cluster: &TestCluster) -> anyhow::Result<Value> {
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    Ok(service["spec"]["selector"].clone())
}

/// Adds an object to a bundle of a kind that the cluster does not serve, and that is left out.
fn bring_unserved_kind(bundle: &Path) -> anyhow::Result<()> {
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "metrics"},
    });
    fs::write(bundle.join("manifests/monitor.json"), monitor.to_string())?;
    Ok(())
}

/// The folder of something that is no valid bundle.
fn invalid(cluster: &TestCluster) -> anyhow::Result<&'static str> {
    let name = "invalid";
    let folder = cluster.add_bundle(&sample::bundle("sample.v2"), name)?;
    cluster.edit(
        &folder,
        "deploymentName: sample-operator",
        "deploymentName: missing",
    )?;
    Ok(name)
}

pub(super) async fn deployment(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/sample"))
        .await?
        .context("no BundleDeployment")
}
