//! APIs of other owners.

use anyhow::Context;
use serde_json::{Value, json};

use super::traffic;
use crate::{
    command::argument,
    request,
    sample::{self, WIDGETS},
    steps::{
        self, BUNDLE_DEPLOYMENTS, CRDS, PATIENCE, check, condition, conditions, delete, get, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The CRD of the sample bundle without conversion, as another owner would create it.
fn crd(metadata: &Value) -> anyhow::Result<Value> {
    let mut crd = sample::manifest()?;
    for (name, value) in metadata.as_object().into_iter().flatten() {
        crd["metadata"][name] = value.clone();
    }
    Ok(crd)
}

/// Waits until the BundleDeployment is rejected with these words.
async fn wait_until_rejected(cluster: &TestCluster, words: &[&str]) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    until(&format!("it is rejected with {words:?}"), PATIENCE, async || {
        let said = conditions(&get(&cluster.client, path).await?.context("no BundleDeployment")?);
        let all = words.iter().all(|word| said.contains(word));
        Ok(check(all && said.contains("Accepted=False"), || said))
    })
    .await
}

pub(super) async fn an_api_of_another_owner_is_rejected_with_its_name(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    cluster.bundle("sample.v1")?;
    let path = sample::DEFINITION;
    for (metadata, owner) in [
        (json!({}), "not Windlass"),
        (
            json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {
                "meta.helm.sh/release-name": "widgets", "meta.helm.sh/release-namespace": "apps"}}),
            "the Helm release apps/widgets",
        ),
        (
            json!({"labels": {"olm.managed": "true", "operators.coreos.com/sample.operators": ""},
                "annotations": {"operatorframework.io/installed-alongside-1f2e3d": "operators/sample.v1"}}),
            "OLM's ClusterServiceVersion operators/sample.v1",
        ),
        (
            json!({"labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension",
                "olm.operatorframework.io/owner-name": "widgets"}}),
            "OLM's ClusterExtension widgets",
        ),
    ] {
        succeed(&cluster.client, "POST", CRDS, Some(&crd(&metadata)?)).await?;
        let object = steps::bundle_deployment("sample", "sample-system", "sample.v1");
        succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
        wait_until_rejected(cluster, &["ApiOwned", WIDGETS, owner, "spec.adopt"]).await?;
        let there = get(&cluster.client, path).await?.context("no CRD")?;
        anyhow::ensure!(
            there["metadata"]["generation"] == 1
                && there["metadata"]["labels"] == metadata.get("labels").cloned().unwrap_or(Value::Null),
            "the CRD was changed: {}",
            there["metadata"]
        );
        let namespace = get(&cluster.client, "/api/v1/namespaces/sample-system").await?;
        anyhow::ensure!(namespace.is_none(), "objects were written before the rejection");
        // Deleting a rejected BundleDeployment keeps the objects of other owners.
        delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
        anyhow::ensure!(
            get(&cluster.client, path).await?.is_some(),
            "the CRD of {owner} was deleted"
        );
        delete(&cluster.client, path).await?;
    }
    Ok(())
}

pub(super) async fn an_adopted_crd_keeps_its_objects(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    // The owner is an installer whose objects the garbage collector deletes.
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = json!({"metadata": {"name": "former-owner"}, "rules": []});
    let role = succeed(&cluster.client, "POST", roles, Some(&role)).await?.body;
    let metadata = json!({
        "labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension",
            "olm.operatorframework.io/owner-name": "widgets"},
        "ownerReferences": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "name": "former-owner", "uid": role["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}],
    });
    let mut theirs = crd(&metadata)?;
    for version in theirs["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["served"] = version["storage"].clone();
    }
    succeed(&cluster.client, "POST", CRDS, Some(&theirs)).await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let widgets = |version| sample::widgets(traffic::NAMESPACE, version);
    let object = json!({"apiVersion": "sample.windlass.dev/v1", "kind": "Widget",
        "metadata": {"name": "kept"}, "spec": {"size": 3}});
    until("the API is served", PATIENCE, async || {
        let answer = request::send(&cluster.client, "POST", &widgets("v1"), Some(&object)).await?;
        Ok(check(answer.code == 201, || answer.to_string()))
    })
    .await?;
    let bundle = sample::bundle("sample.v1");
    let install = [
        "install",
        argument(&bundle)?,
        "--namespace",
        "sample-system",
        "--name",
        "sample",
    ];
    let said = cluster.command.fail(&install).await?;
    anyhow::ensure!(
        said.contains("OLM's ClusterExtension widgets") && said.contains("--adopt"),
        "{said}"
    );
    let name = format!("CustomResourceDefinition/{WIDGETS}");
    let adopting = ["--adopt", &name, "--deletion-policy", "delete-crds"];
    cluster
        .command
        .succeed(&[&install[..], &adopting].concat())
        .await?;
    let adopted = sample::crd(cluster).await?;
    anyhow::ensure!(
        adopted["metadata"]["labels"]["windlass.dev/bundle-deployment"] == "sample"
            && adopted["metadata"]
                .get("ownerReferences")
                .is_none_or(|references| references == &json!([]))
            && adopted["spec"]["conversion"]["strategy"] == "Webhook",
        "{adopted}"
    );
    // The former owner is deleted, and the objects stay.
    delete(&cluster.client, &format!("{roles}/former-owner")).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(100).await?;
    traffic::finish(load).await?;
    let converted = get(&cluster.client, &format!("{}/kept", widgets("v1beta1"))).await?;
    anyhow::ensure!(
        converted
            .as_ref()
            .is_some_and(|object| object["spec"]["width"] == "3"),
        "not converted: {converted:?}"
    );
    // Adopted objects follow the deletion policy.
    cluster.command.succeed(&["uninstall", "sample"]).await?;
    let left = get(&cluster.client, sample::DEFINITION).await?;
    anyhow::ensure!(
        left.is_none(),
        "the CRD stayed although the deletion policy is DeleteCRDs"
    );
    Ok(())
}

pub(super) async fn objects_of_a_bundle_deployment_cannot_be_adopted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    steps::install(
        &cluster.client,
        "first",
        "first-system",
        &cluster.bundle("sample.v1")?,
    )
    .await?;
    let mut second = steps::bundle_deployment("sample", "sample-system", "sample.v1");
    second["spec"]["adopt"] = json!([{"kind": "CustomResourceDefinition", "name": WIDGETS}]);
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&second)).await?;
    wait_until_rejected(cluster, &["ConversionClaimed", "BundleDeployment first"]).await?;
    delete(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/first")).await?;
    condition(
        &cluster.client,
        sample::BUNDLE_DEPLOYMENT,
        "Ready",
        "True",
        PATIENCE,
    )
    .await?;
    Ok(())
}
