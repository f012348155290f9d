//! `spec.adopt` without a command: it lists each object of the bundle that exists.

use anyhow::Context;
use serde_json::{Value, json};

use super::{
    super::traffic,
    foreign_install::{ForeignInstall, InstallIssuer},
};
use crate::{
    sample::{self, NAMESPACE, WIDGETS},
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// The existing objects with names of the bundle.
fn adopt_list() -> Value {
    let adoption = |kind: &str, name: &str| json!({"kind": kind, "name": name});
    json!([
        adoption("CustomResourceDefinition", WIDGETS),
        adoption("ValidatingWebhookConfiguration", "vwidget.sample.windlass.dev"),
        adoption("MutatingWebhookConfiguration", "mwidget.sample.windlass.dev"),
        adoption("ServiceAccount", "sample-operator"),
        adoption("Service", "sample-operator-service"),
        adoption("Deployment", "sample-operator"),
    ])
}

pub(in super::super) async fn an_adoption_that_would_interrupt_calls_is_rejected(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let foreign = ForeignInstall::with_bundle_names();
    let issuer = InstallIssuer::new(&foreign)?;
    foreign.install(&cluster.client, &issuer).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    let _operator = cluster.operator.start()?;
    cluster.bundle("sample.v1")?;
    let mut object = steps::bundle_deployment("sample", NAMESPACE, "sample.v1");
    object["spec"]["adopt"] = adopt_list();
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    until("it is rejected", PATIENCE, async || {
        let said = steps::conditions(
            &get(&cluster.client, sample::BUNDLE_DEPLOYMENT)
                .await?
                .context("it does not exist")?,
        );
        let words = ["AdoptionInterrupts", "--adopt-from", "sample-operator-service"];
        Ok(check(words.iter().all(|word| said.contains(word)), || said))
    })
    .await?;
    load.at_least(100).await?;
    traffic::finish_at(load, &["v1", "v1beta1"]).await?;
    let deployment = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("no Deployment")?;
    anyhow::ensure!(
        deployment["metadata"]["generation"] == 1,
        "it was changed: {deployment}"
    );
    Ok(())
}
