//! Rotations under load.

use anyhow::Context;
use serde_json::{Value, json};

use super::{drift, foreign, traffic};
use crate::{
    request::text,
    sample,
    steps::{CRDS, PATIENCE, check, get, install, succeed, until},
    test_cluster::TestCluster,
};

pub(super) async fn the_leaf_rotates_under_load(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let before = generation(cluster).await?;
    sample::rotate(cluster, "leaf").await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    anyhow::ensure!(
        generation(cluster).await? == before,
        "the renewal of the leaf changed a target"
    );
    Ok(())
}

pub(super) async fn the_ca_rotates_under_load(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let before = generation(cluster).await?;
    for _ in 0..2 {
        sample::rotate(cluster, "ca").await?;
    }
    load.at_least(50).await?;
    traffic::finish(load).await?;
    let writes = generation(cluster).await? - before;
    anyhow::ensure!(
        writes == 2,
        "two CA rotations changed the spec of the CRD {writes} times"
    );
    Ok(())
}

/// Its pods drain before they end. Without that, a client cannot distinguish an idle connection that the
/// server closes from one with a request on it, in any restart.
pub(super) async fn a_server_that_never_reloads_is_restarted_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = cluster.bundle("sample.v1")?;
    cluster.edit(
        &bundle,
        "- name: POD_IP",
        "- name: RELOAD\n                  value: \"false\"\n                - name: POD_IP",
    )?;
    let image = format!("image: {}:v1", sample::IMAGE);
    let drains = format!("{image}\n                args: [\"--linger=2s\"]");
    cluster.edit(&bundle, &image, &drains)?;
    install(&cluster.client, "sample", "sample-system", &bundle).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    sample::rotate(cluster, "leaf").await?;
    sample::rotate(cluster, "ca").await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    let path = sample::DEPLOYMENT;
    let deployment = get(&cluster.client, path).await?.context("no Deployment")?;
    let restarts = &deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    anyhow::ensure!(
        *restarts == json!("3"),
        "expected one restart per rotation, but the Deployment has revision {restarts}"
    );
    Ok(())
}

/// A target that rejects a longer trust bundle is named. The other targets are updated. It is
/// updated once it accepts the bundle.
pub(super) async fn a_target_that_rejects_its_trust_bundle_is_named_and_others_are_updated(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let (mut open, mut closed) = (drift::extension_config_crd(), drift::extension_config_crd());
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    for (crd, longest) in [(&mut closed, 10), (&mut open, 51_200)] {
        *crd.pointer_mut(schema).context("no schema")? = short_trust_bundles(longest);
    }
    foreign::define(&cluster.client, &open).await?;
    let refusing = drift::extension_config();
    succeed(&cluster.client, "POST", drift::EXTENSION_CONFIGS, Some(&refusing)).await?;
    let path = sample::SERVING_CERTIFICATE;
    wait_for_four_targets(cluster).await?;
    // It may keep its current trust bundle, but accepts no other.
    let definition = format!("{CRDS}/{}", text(&open, "/metadata/name"));
    let replace =
        |crd: &Value| json!([{"op": "replace", "path": "/spec/versions", "value": crd["spec"]["versions"]}]);
    succeed(&cluster.client, "PATCH", &definition, Some(&replace(&closed))).await?;

    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let trust = sample::trust_bundle(cluster).await?;
    sample::request_rotation(cluster, "ca").await?;
    let crd = sample::DEFINITION;
    until("the other targets have the next CA", PATIENCE, async || {
        let crd = get(&cluster.client, crd).await?.context("no CRD")?;
        let carried = text(&crd, "/spec/conversion/webhook/clientConfig/caBundle");
        Ok(check(carried != trust, || {
            "the trust bundle is unchanged".to_owned()
        }))
    })
    .await?;
    wait_until_blocked(cluster, path, "hooks").await?;

    succeed(&cluster.client, "PATCH", &definition, Some(&replace(&open))).await?;
    sample::settled(cluster).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Waits until the three targets of the sample and one more have the trust bundle.
pub(super) async fn wait_for_four_targets(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = sample::SERVING_CERTIFICATE;
    until("four targets are current", PATIENCE, async || {
        let targets = get(&cluster.client, path).await?.unwrap_or_default()["status"]["targets"].take();
        Ok(check(targets["current"] == 4, || targets.to_string()))
    })
    .await
}

/// Returns a schema that limits the length of a CA bundle.
fn short_trust_bundles(longest: u32) -> Value {
    let object = |properties: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    let trust = json!({"type": "string", "maxLength": longest});
    object(json!({"spec": object(json!({"clientConfig": object(json!({"caBundle": trust}))}))}))
}

/// Waits until a ServingCertificate names a target that rejects its trust bundle, in its condition and in its
/// list.
async fn wait_until_blocked(cluster: &TestCluster, path: &str, target: &str) -> anyhow::Result<()> {
    until(&format!("{target} is named"), PATIENCE, async || {
        let object = get(&cluster.client, path).await?.unwrap_or_default();
        let conditions = crate::steps::conditions(&object);
        let failing = &object["status"]["targets"]["failing"];
        let is_reported = conditions.contains("Ready=False Blocked: ")
            && conditions.contains(target)
            && failing[0]["name"] == target;
        Ok(check(is_reported, || format!("{conditions}; {failing}")))
    })
    .await
}

/// Returns the generation of the sample's CRD.
async fn generation(cluster: &TestCluster) -> anyhow::Result<i64> {
    let crd = sample::crd(cluster).await?;
    crd["metadata"]["generation"]
        .as_i64()
        .context("the CRD has no generation")
}
