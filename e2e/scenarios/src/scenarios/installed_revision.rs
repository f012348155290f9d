//! The installed revision is kept until the next one is installed.

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

pub(super) async fn the_installed_revision_is_kept_while_the_next_is_rejected(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    add_unserved_kind(&cluster.bundle("sample.v2")?)?;
    sample::install(cluster, "sample.v2").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1", "v2"]).await?;
    load.at_least(50).await?;
    cluster.bundle("sample.v1")?;
    sample::set_source(cluster, "sample.v1").await?;
    upgrade::wait_until_stopped(cluster, "Downgrade", "older than the installed sample.v2").await?;
    check_kept(cluster, &load, "Downgrade").await?;

    // An invalid bundle.
    sample::set_source(cluster, add_invalid_bundle(cluster)?).await?;
    let refused = upgrade::wait_until_stopped(cluster, "BundleInvalid", "missing").await?;
    anyhow::ensure!(
        text(&refused, "/status/next/reason") == "BundleInvalid"
            && text(&refused, "/status/installed/name") == "sample.v2",
        "{}",
        refused["status"]
    );
    check_kept(cluster, &load, "BundleInvalid").await?;

    // Neither the next bundle nor the installed one can be read from its folder.
    fs::remove_dir_all(cluster.operator.bundle_dir.join("sample.v2"))?;
    sample::set_source(cluster, "nowhere").await?;
    upgrade::wait_until_stopped(cluster, "SourceInvalid", "cannot be read").await?;
    check_kept(cluster, &load, "SourceInvalid").await?;
    load.stop().await;
    Ok(())
}

pub(super) async fn the_installed_revision_is_kept_while_the_next_is_stuck(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    add_unserved_kind(&cluster.bundle("sample.v1")?)?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let broken = upgrade::add_broken_bundle(cluster, "crash")?;
    for (canary, reason) in [(true, "CanaryCrashing"), (false, "RollingOut")] {
        let config = json!({"spec": {"config": {"windlass": {"canary": canary}}}});
        succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&config)).await?;
        sample::set_source(cluster, &broken).await?;
        upgrade::wait_until_stopped(cluster, reason, "exit code 1").await?;
        delete_objects_repeatedly(cluster, &load).await?;
        wait_for_both_statuses(cluster, reason).await?;
        sample::set_source(cluster, "sample.v1").await?;
    }
    load.stop().await;
    Ok(())
}

/// The started revision has changed the CRD, so a rollback does not happen automatically.
pub(super) async fn the_installed_revision_is_kept_while_a_started_one_is_rejected(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let broken = json!({"spec": {
        "source": {"directory": {"path": upgrade::add_broken_bundle(cluster, "crash")?}},
        "config": {"windlass": {"canary": false}},
    }});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&broken)).await?;
    upgrade::wait_until_stopped(cluster, "RollingOut", "exit code 1").await?;
    let versions = sample::crd(cluster).await?["spec"]["versions"].clone();
    let has_begun = versions
        .as_array()
        .is_some_and(|all| all.iter().any(|version| version["name"] == "v2"));
    anyhow::ensure!(has_begun, "the CRD is unchanged: {versions}");

    sample::set_source(cluster, add_invalid_bundle(cluster)?).await?;
    upgrade::wait_until_stopped(cluster, "BundleInvalid", "missing").await?;
    delete_each_object(cluster).await?;
    wait_for_pods(cluster).await?;
    let versions = sample::crd(cluster).await?["spec"]["versions"].clone();
    anyhow::ensure!(
        versions.to_string().contains("\"v2\""),
        "the started revision was undone: {versions}"
    );
    // The install continues.
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// Deletes each object of the installed revision and waits until it is created again, while the next revision
/// is rejected for `reason`, and checks that the status reports both.
pub(super) async fn check_kept(cluster: &TestCluster, load: &Load, reason: &str) -> anyhow::Result<()> {
    delete_objects_repeatedly(cluster, load).await?;
    wait_for_both_statuses(cluster, reason).await?;
    let object = deployment(cluster).await?;
    anyhow::ensure!(
        current(&object, "Accepted", "True").is_none(),
        "{}",
        conditions(&object)
    );
    Ok(())
}

/// Waits until the status reports that the installed revision is healthy, and why the next one is stuck.
async fn wait_for_both_statuses(cluster: &TestCluster, reason: &str) -> anyhow::Result<()> {
    until(
        "the status reports the installed and the next revision",
        PATIENCE,
        async || {
            let object = deployment(cluster).await?;
            let holds = |condition: &str| current(&object, condition, "True").is_some();
            let is_refused =
                current(&object, "Ready", "False").is_some_and(|ready| ready["reason"] == reason);
            let is_told = holds("Available")
                && holds("Armed")
                && is_refused
                && object["status"]["installed"]["healthy"] == true
                && object["status"]["next"]["reason"] == reason;
            Ok(check(is_told, || object["status"].to_string()))
        },
    )
    .await
}

/// Deletes each object of the installed revision repeatedly. Calls may fail only between a deletion and the
/// recovery.
async fn delete_objects_repeatedly(cluster: &TestCluster, load: &Load) -> anyhow::Result<()> {
    let (started, duration) = (Instant::now(), upgrade::hold_duration()?);
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
        delete_each_object(cluster).await?;
        wait_for_pods(cluster).await?;
        anyhow::ensure!(
            self::selector(cluster).await? == selector,
            "the Service has another selector"
        );
        load.at_least(50).await?;
        drop(load.lap());
        rounds += 1;
    }
    tracing::info!(rounds, requests, seconds = started.elapsed().as_secs(), "Kept");
    Ok(())
}

/// Deletes each object of the installed revision, one after the other, and waits until it is created again.
pub(super) async fn delete_each_object(cluster: &TestCluster) -> anyhow::Result<()> {
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
        until(&format!("{path} is created again"), PATIENCE, async || {
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
    overwrite_conversion(cluster).await
}

/// Removes the conversion of the CRD, changes its path and its Service, and replaces the CRD by one without
/// Windlass's labels and annotations. Waits each time until everything is restored.
async fn overwrite_conversion(cluster: &TestCluster) -> anyhow::Result<()> {
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
                // The PUT of `kubectl replace` with the author's manifest.
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
            &format!("the conversion is restored after {change}"),
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

/// Waits until pods of the installed revision are available, and deleted pods have terminated.
async fn wait_for_pods(cluster: &TestCluster) -> anyhow::Result<()> {
    until("the installed revision is available", PATIENCE, async || {
        let object = deployment(cluster).await?;
        let works = object["status"]["installed"]["healthy"] == true
            && current(&object, "Available", "True").is_some()
            && current(&object, "Armed", "True").is_some();
        Ok(check(works, || conditions(&object)))
    })
    .await?;
    until("the deleted pods have terminated", PATIENCE, async || {
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

/// Returns the selector of the installed revision's Service.
async fn selector(cluster: &TestCluster) -> anyhow::Result<Value> {
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    Ok(service["spec"]["selector"].clone())
}

/// Adds an object of a kind that the cluster does not serve to a bundle; the install omits it.
fn add_unserved_kind(bundle: &Path) -> anyhow::Result<()> {
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "metrics"},
    });
    fs::write(bundle.join("manifests/monitor.json"), monitor.to_string())?;
    Ok(())
}

/// Writes an invalid bundle, and returns its folder.
fn add_invalid_bundle(cluster: &TestCluster) -> anyhow::Result<&'static str> {
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
