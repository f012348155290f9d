//! What kstatus, with which GitOps tools wait for objects, computes for objects of Windlass.

use anyhow::Context;
use serde_json::{Value, json};

use super::super::traffic;
use crate::{
    command::argument,
    gitops::Gitops,
    request::text,
    sample::{self, BUNDLE_DEPLOYMENT},
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, check, get, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of a ServingCertificate that cannot be issued.
const NAMESPACE: &str = "platform";

/// An install, an upgrade and a refused upgrade: an object is never current before it is ready, and it has
/// failed when only a user can continue.
pub(in super::super) async fn gitops_tools_see_installs_progress_succeed_and_fail(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    for bundle in ["sample.v1", "sample.v2"] {
        cluster.bundle(bundle)?;
    }
    let broken = cluster.add_bundle(&sample::bundle("sample.v2"), "broken")?;
    cluster.edit(
        &broken,
        "deploymentName: sample-operator",
        "deploymentName: no-such-deployment",
    )?;
    let bundle = steps::bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    let objects = [bundle.clone(), certificate(), rejected_target()];
    let documents: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    let file = cluster.write("objects.yaml", &documents)?;
    let gitops = Gitops::start(cluster, "status", &["--watch"], &[argument(&file)?])?;
    let is = async |kind: &str, expected: &[&str]| wait_for(&gitops, kind, expected).await;
    let all = ["BundleDeployment", "ServingCertificate", "InjectionTarget"];
    for kind in all {
        is(kind, &["NotFound"]).await?;
    }

    // No operator runs yet.
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let secret = json!({"metadata": {"name": "hook-cert"}, "stringData": {"a": "b"}});
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    succeed(client, "POST", &secrets, Some(&secret)).await?;
    let certificates = serving_certificates(NAMESPACE);
    let targets = "/apis/windlass.dev/v1alpha1/injectiontargets";
    for (collection, object) in [
        (BUNDLE_DEPLOYMENTS, &objects[0]),
        (&certificates, &objects[1]),
        (targets, &objects[2]),
    ] {
        succeed(client, "POST", collection, Some(object)).await?;
    }
    for kind in all {
        is(kind, &["NotFound", "InProgress"]).await?;
    }
    let created = get(client, BUNDLE_DEPLOYMENT).await?.context("gone")?;
    anyhow::ensure!(
        created["status"] == json!({"observedGeneration": -1}),
        "unexpected status: {created}"
    );

    let _operator = cluster.operator.start()?;
    for kind in ["ServingCertificate", "InjectionTarget"] {
        is(kind, &["NotFound", "InProgress", "Failed"]).await?;
    }
    let mut expected = vec!["NotFound", "InProgress", "Current"];
    is("BundleDeployment", &expected).await?;
    check_ready(cluster).await?;

    sample::set_source(cluster, "sample.v2").await?;
    expected.extend(["InProgress", "Current"]);
    is("BundleDeployment", &expected).await?;
    check_ready(cluster).await?;

    sample::set_source(cluster, "broken").await?;
    expected.extend(["InProgress", "Failed"]);
    is("BundleDeployment", &expected).await?;
    let refused = get(client, BUNDLE_DEPLOYMENT).await?.context("gone")?;
    anyhow::ensure!(
        steps::current(&refused, "Stalled", "True").is_some()
            && steps::current(&refused, "Available", "True").is_some(),
        "{}",
        steps::conditions(&refused)
    );

    sample::set_source(cluster, "sample.v2").await?;
    expected.extend(["InProgress", "Current"]);
    is("BundleDeployment", &expected).await?;
    check_ready(cluster).await?;

    // The Secret of another client is deleted.
    steps::delete(client, &format!("{secrets}/hook-cert")).await?;
    let certificate = ["NotFound", "InProgress", "Failed", "InProgress"];
    is("ServingCertificate", &certificate).await?;
    let lines = gitops.stop().await?;
    let errors: Vec<_> = lines.iter().filter(|line| line["event"] == "error").collect();
    anyhow::ensure!(errors.is_empty(), "{errors:?}");
    Ok(())
}

/// Waits until the object of a kind has had these statuses, and no other, in this order.
async fn wait_for(gitops: &Gitops, kind: &str, expected: &[&str]) -> anyhow::Result<()> {
    until(&format!("{kind} is {expected:?}"), PATIENCE, async || {
        let lines = gitops.lines()?;
        let of_kind = lines.iter().filter(|line| line["kind"] == kind);
        let mut seen: Vec<_> = of_kind.map(|line| text(line, "/status")).collect();
        seen.dedup();
        anyhow::ensure!(
            expected.starts_with(&seen),
            "{kind} was {seen:?} instead of {expected:?}: {lines:?}"
        );
        Ok(check(seen == expected, || format!("{seen:?}")))
    })
    .await
}

/// Fails if the BundleDeployment, which is current, is not ready at its generation.
async fn check_ready(cluster: &TestCluster) -> anyhow::Result<()> {
    let deployment = get(&cluster.client, BUNDLE_DEPLOYMENT).await?.context("gone")?;
    anyhow::ensure!(
        steps::current(&deployment, "Ready", "True").is_some() && !has_stalled(&deployment),
        "it is current too early: {}",
        steps::conditions(&deployment)
    );
    Ok(())
}

fn has_stalled(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Stalled")
}

fn certificate() -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate",
        "metadata": {"namespace": NAMESPACE, "name": "hook"},
        "spec": {"serviceName": "hook", "secretName": "hook-cert"},
    })
}

fn rejected_target() -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "InjectionTarget", "metadata": {"name": "secrets"},
        "spec": {"version": "v1", "kind": "Secret", "plural": "secrets", "paths": [{"path": "/data/ca"}]},
    })
}
