//! Failing upgrades, which do not affect the installed revision, and downgrades.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::{Value, json};

use super::{foreign, traffic};
use crate::{
    load::Load,
    request::text,
    sample,
    steps::{
        MUTATING, PATIENCE, VALIDATING, check, conditions, current, delete, duration_in, get, install, list,
        ready, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The environment variable with the seconds for which each failing revision is observed; 600 in a full run.
const HOLD: &str = "WINDLASS_E2E_HOLD";

/// How long each failing revision is observed by default.
const SHORT_HOLD: Duration = Duration::from_secs(2);

const CANARIES: &str = "/api/v1/namespaces/sample-system/pods?labelSelector=windlass.dev/canary";

const PODS: &str =
    "/api/v1/namespaces/sample-system/pods?labelSelector=app.kubernetes.io/name=sample-operator";

/// The fault of the new revision, the reason in the status, and words of its message.
const FAULTS: [(&str, &str, &str); 6] = [
    (
        "crash",
        "CanaryCrashing",
        "exit code 1: Error: Error: crashing, as requested by --fault crash",
    ),
    (
        "wrong-certificate",
        "CanaryFailed",
        "serves an untrusted certificate",
    ),
    ("not-found", "CanaryFailed", "answered /convert with HTTP 404"),
    (
        "error",
        "CanaryFailed",
        "HTTP 500: failing, as requested by --fault error",
    ),
    ("wrong-version", "CanaryFailed", "an object whose apiVersion is"),
    ("lose-field", "CanaryFailed", "spec.size was lost"),
];

pub(super) async fn a_broken_revision_is_stopped_at_its_canary(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start_with_newest(cluster).await?;
    load.at_least(50).await?;
    let before = serving_state(cluster).await?;
    for (fault, reason, words) in FAULTS {
        let broken = add_broken_bundle(cluster, fault)?;
        sample::set_source(cluster, &broken).await?;
        let status = wait_until_stopped(cluster, reason, words).await?;
        tracing::info!(fault, words = conditions(&status), "Stopped");
        let held = keep_load(&load).await?;
        wait_until_stopped(cluster, reason, words).await?;
        anyhow::ensure!(
            serving_state(cluster).await? == before,
            "the installed revision was changed by one with --fault {fault}"
        );
        let bundles = &status["status"];
        anyhow::ensure!(
            text(bundles, "/installed/name") == "sample.v1" && text(bundles, "/next/name") == "sample.v2",
            "the status names {} and {}",
            bundles["installed"],
            bundles["next"]
        );
        sample::set_source(cluster, "sample.v1").await?;
        ready(&cluster.client, "sample", PATIENCE).await?;
        wait_for_no_canary(cluster).await?;
        anyhow::ensure!(
            serving_state(cluster).await? == before,
            "the state after the rollback differs"
        );
        load.at_least(50).await?;
        let lap = load.lap();
        tracing::info!(
            fault,
            held_for = ?held,
            requests = lap.requests,
            failed = lap.failed,
            "Set back"
        );
        lap.check().with_context(|| {
            format!("calls failed because of a revision with --fault {fault} or of the rollback")
        })?;
    }
    let report = traffic::finish(load).await?;
    report.check_served(traffic::NEWEST, &[false])?;
    Ok(())
}

pub(super) async fn a_canary_that_cannot_start_reports_the_cause(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let folder = cluster.add_bundle(&sample::bundle("sample.v2"), "sample.v2-incomplete")?;
    let image = format!("image: {}:v2", sample::IMAGE);
    let incomplete = format!("{image}\n                envFrom: [{{configMapRef: {{name: missing}}}}]");
    cluster.edit(&folder, &image, &incomplete)?;
    sample::set_source(cluster, "sample.v2-incomplete").await?;
    wait_until_stopped(cluster, "CanaryWaiting", "CreateContainerConfigError").await?;
    // With the missing object, it resumes automatically.
    let missing = json!({"metadata": {"name": "missing"}, "data": {"A": "b"}});
    let path = "/api/v1/namespaces/sample-system/configmaps";
    succeed(&cluster.client, "POST", path, Some(&missing)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    wait_for_no_canary(cluster).await
}

pub(super) async fn removal_during_a_canary_leaves_nothing_behind(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::set_source(cluster, &add_broken_bundle(cluster, "crash")?).await?;
    wait_until_stopped(cluster, "CanaryCrashing", "exit code 1").await?;
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    wait_for_no_canary(cluster).await?;
    for collection in [
        VALIDATING,
        MUTATING,
        "/apis/apps/v1/namespaces/sample-system/deployments",
        "/api/v1/namespaces/sample-system/services",
    ] {
        let left = list(&cluster.client, collection).await?;
        anyhow::ensure!(left.is_empty(), "{collection} contains {} objects", left.len());
    }
    Ok(())
}

pub(super) async fn without_a_canary_a_broken_revision_can_be_rolled_back(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start_with_newest(cluster).await?;
    load.at_least(50).await?;
    let without = json!({"spec": {"config": {"windlass": {"canary": false}}}});
    patch(cluster, &without).await?;
    sample::set_source(cluster, &add_broken_bundle(cluster, "crash")?).await?;
    wait_until_stopped(
        cluster,
        "RollingOut",
        "is crashing: container manager terminated with exit code 1",
    )
    .await?;
    anyhow::ensure!(
        list(&cluster.client, CANARIES).await?.is_empty(),
        "there is a canary although it is disabled"
    );
    keep_load(&load).await?;
    sample::set_source(cluster, "sample.v1").await?;
    let settled = ready(&cluster.client, "sample", PATIENCE).await?;
    anyhow::ensure!(
        settled["status"]["next"].is_null(),
        "still installing {}",
        settled["status"]["next"]
    );
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;
    report.check_served(traffic::NEWEST, &[false])?;
    Ok(())
}

pub(super) async fn a_downgrade_happens_only_when_allowed(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v2").await?;
    let load = traffic::start_with_newest(cluster).await?;
    load.at_least(50).await?;
    cluster.bundle("sample.v1")?;
    sample::set_source(cluster, "sample.v1").await?;
    let refused =
        wait_until_stopped(cluster, "Downgrade", "older than the installed sample.v2 2.0.0").await?;
    anyhow::ensure!(
        text(&refused, "/status/installed/name") == "sample.v2",
        "the status names {}",
        refused["status"]["installed"]
    );
    patch(cluster, &json!({"spec": {"allowDowngrade": true}})).await?;
    let older = ready(&cluster.client, "sample", PATIENCE).await?;
    anyhow::ensure!(
        text(&older, "/status/installed/name") == "sample.v1",
        "the status names {}",
        older["status"]["installed"]
    );
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;
    report.check_served(traffic::NEWEST, &[true, false])?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(!serves(&crd, "v2"), "v2 is served by a release that lacks it");
    wait_for_no_canary(cluster).await
}

pub(super) async fn a_downgrade_never_loses_stored_objects(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let newer = cluster.add_bundle(&sample::bundle("sample.v2"), "sample.v2-stored")?;
    let (served, stored) = (
        "served: true\n    storage: false",
        "served: true\n    storage: true",
    );
    cluster.edit(
        &newer,
        &format!("name: v1\n    {stored}"),
        &format!("name: v1\n    {served}"),
    )?;
    cluster.edit(
        &newer,
        &format!("name: v2\n    {served}"),
        &format!("name: v2\n    {stored}"),
    )?;
    install(&cluster.client, "sample", "sample-system", &newer).await?;
    cluster.bundle("sample.v1")?;
    let older = json!({"spec": {"allowDowngrade": true, "source": {"directory": {"path": "sample.v1"}}}});
    patch(cluster, &older).await?;
    wait_until_stopped(
        cluster,
        "StoredVersionsLost",
        "objects of widgets.sample.windlass.dev may be stored as v2",
    )
    .await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(serves(&crd, "v2"), "v2 is not served");
    sample::set_source(cluster, "sample.v2-stored").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// The canary fails here, so what exists then was created before it.
pub(super) async fn crds_without_a_conversion_are_served_before_the_canary(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let crd = |plural: &str, versions: &[&str]| {
        let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
        let mut crd = foreign::crd("things.example.com/v1", &kind, plural, true);
        let versions = versions.iter().map(|name| foreign::version(name, *name == "v1"));
        crd["spec"]["versions"] = versions.collect::<Vec<_>>().into();
        crd
    };
    let bring = |folder: &Path, crd: &Value| {
        let name = text(crd, "/spec/names/plural");
        fs::write(folder.join(format!("manifests/{name}.json")), crd.to_string())
    };
    bring(&cluster.bundle("sample.v1")?, &crd("plain", &["v1"]))?;
    sample::install(cluster, "sample.v1").await?;
    let next = add_broken_bundle(cluster, "crash")?;
    let folder = cluster.operator.bundle_dir.join(&next);
    bring(&folder, &crd("plain", &["v1", "v2"]))?;
    bring(&folder, &crd("gadgets", &["v1"]))?;
    sample::set_source(cluster, &next).await?;
    wait_until_stopped(cluster, "CanaryCrashing", "exit code 1").await?;
    for served in ["v2/plain", "v1/gadgets"] {
        let path = format!("/apis/things.example.com/{served}");
        get(&cluster.client, &path)
            .await?
            .with_context(|| format!("{path} is not served"))?;
    }
    anyhow::ensure!(
        !serves(&sample::crd(cluster).await?, "v2"),
        "v2 is served before a server converts objects to it"
    );
    sample::set_source(cluster, "sample.v1").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// Adds the newer sample with a fault, and returns its folder.
pub(super) fn add_broken_bundle(cluster: &TestCluster, fault: &str) -> anyhow::Result<String> {
    let name = format!("sample.v2-{fault}");
    let folder = cluster.add_bundle(&sample::bundle("sample.v2"), &name)?;
    let image = format!("image: {}:v2", sample::IMAGE);
    cluster.edit(
        &folder,
        &image,
        &format!("{image}\n                args: [--fault={fault}]"),
    )?;
    Ok(name)
}

async fn patch(cluster: &TestCluster, patch: &Value) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "PATCH", path, Some(patch)).await?;
    Ok(())
}

/// Waits until the condition Ready of the current spec is `False` for `reason`, with these words.
pub(super) async fn wait_until_stopped(
    cluster: &TestCluster,
    reason: &str,
    words: &str,
) -> anyhow::Result<Value> {
    let path = sample::BUNDLE_DEPLOYMENT;
    until(
        &format!("Ready is False because of {reason}: {words}"),
        PATIENCE,
        async || {
            let object = get(&cluster.client, path).await?.context("no BundleDeployment")?;
            let is_stopped = current(&object, "Ready", "False").is_some_and(|condition| {
                condition["reason"] == reason && text(condition, "/message").contains(words)
            });
            Ok(if is_stopped {
                Ok(object)
            } else {
                Err(conditions(&object))
            })
        },
    )
    .await
}

/// Returns the serving state: the Deployment's pods and template, and whether the CRD serves the version of
/// the newer bundle.
pub(super) async fn serving_state(cluster: &TestCluster) -> anyhow::Result<Value> {
    let deployment = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("no Deployment")?;
    let crd = sample::crd(cluster).await?;
    let mut pods: Vec<String> = list(&cluster.client, PODS)
        .await?
        .iter()
        .map(|pod| text(pod, "/metadata/uid").to_owned())
        .collect();
    pods.sort();
    Ok(json!({
        "pods": pods, "template": deployment["spec"]["template"], "generation": deployment["metadata"]["generation"],
        "v2": serves(&crd, "v2"),
    }))
}

/// Reports whether a CRD serves a version.
pub(super) fn serves(crd: &Value, version: &str) -> bool {
    crd["spec"]["versions"].as_array().is_some_and(|versions| {
        versions
            .iter()
            .any(|entry| entry["name"] == version && entry["served"] == true)
    })
}

pub(super) async fn wait_for_no_canary(cluster: &TestCluster) -> anyhow::Result<()> {
    until("no canary is left", PATIENCE, async || {
        let left = list(&cluster.client, CANARIES).await?;
        let names: Vec<_> = left.iter().map(|pod| text(pod, "/metadata/name")).collect();
        Ok(check(names.is_empty(), || names.join(", ")))
    })
    .await
}

/// Returns how long each failing revision is observed.
pub(super) fn hold_duration() -> anyhow::Result<Duration> {
    duration_in(HOLD, SHORT_HOLD)
}

/// Keeps the traffic running for a while, and returns how long.
pub(super) async fn keep_load(load: &Load) -> anyhow::Result<Duration> {
    let (started, duration) = (Instant::now(), hold_duration()?);
    while started.elapsed() < duration {
        load.at_least(10).await?;
    }
    Ok(started.elapsed())
}
