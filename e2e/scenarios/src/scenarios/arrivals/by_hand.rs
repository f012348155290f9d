//! `spec.adopt` alone: each object that has a name of the bundle's is listed, and nothing else is done.

use serde_json::{Value, json};

use super::{
    super::traffic,
    theirs::{Issuer, Theirs},
};
use crate::{
    sample::{self, NAMESPACE, WIDGETS},
    steps::{self, BUNDLE_DEPLOYMENTS, succeed},
    test_cluster::TestCluster,
};

/// What the bundle has a name of.
fn adopted() -> Value {
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

pub(in super::super) async fn an_install_of_the_same_names_is_adopted_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let theirs = Theirs::of_bundle();
    let issuer = Issuer::new(&theirs)?;
    theirs.install(&cluster.client, &issuer).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(100).await?;
    let _operator = cluster.operator.start()?;
    cluster.bundle("sample.v1")?;
    let mut object = steps::bundle_deployment("sample", NAMESPACE, "sample.v1");
    object["spec"]["adopt"] = adopted();
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    steps::ready(&cluster.client, "sample", steps::PATIENCE).await?;
    sample::settled(cluster).await?;
    load.at_least(100).await?;
    traffic::finish_at(load, &["v1", "v1beta1"]).await?;
    Ok(())
}
