//! Installs with the permissions of a ServiceAccount.

use anyhow::Context;
use serde_json::{Value, json};

use super::traffic;
use crate::{
    request::text,
    sample,
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, conditions, delete, get, gone, ready, succeed, until},
    test_cluster::TestCluster,
};

const ACCOUNTS: &str = "/api/v1/namespaces/sample-system/serviceaccounts";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Missing permissions of the account are printed, and nothing is written. The printed roles are sufficient
/// for the install and the removal. What is installed keeps running when permissions are revoked.
pub(super) async fn a_bundle_gets_no_rights_that_its_account_lacks(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::create_namespace(cluster, sample::NAMESPACE).await?;
    cluster.bundle("sample.v1")?;
    let mut object = steps::bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    object["spec"]["serviceAccountName"] = json!("tenant");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    wait_for_refusal(cluster, "Accepted=False ServiceAccountNotFound").await?;
    let account = json!({"metadata": {"name": "tenant"}});
    succeed(&cluster.client, "POST", ACCOUNTS, Some(&account)).await?;
    let words = wait_for_refusal(cluster, "Accepted=False ServiceAccountLacksRights").await?;
    // The bundle grants its operator a permission that the account must have itself.
    let handed_out = "get, list, patch, update, watch widgets.sample.windlass.dev, widgets/status.sample.windlass.dev in the whole cluster";
    anyhow::ensure!(words.contains(handed_out), "{words}");
    for path in [
        sample::DEFINITION.to_owned(),
        format!("{ACCOUNTS}/sample-operator"),
    ] {
        anyhow::ensure!(get(&cluster.client, &path).await?.is_none(), "{path} was written");
    }

    let printed = cluster
        .command
        .succeed(&["status", "sample", "--missing-rights"])
        .await?;
    let granted = windlass_object::yaml::documents(printed.as_bytes())
        .map_err(|problem| anyhow::anyhow!("{problem}: {printed}"))?;
    for object in &granted {
        succeed(&cluster.client, "POST", &collection(object), Some(object)).await?;
    }
    ready(&cluster.client, "sample", PATIENCE).await?;

    let binding = granted
        .iter()
        .find(|object| object["kind"] == "ClusterRoleBinding")
        .context("no permission was missing in the whole cluster")?;
    let path = format!("{}/{}", collection(binding), text(binding, "/metadata/name"));
    delete(&cluster.client, &path).await?;
    // Any change of the spec triggers a check.
    let change = json!({"spec": {"upgrade": {"allowInterruption": true}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&change)).await?;
    let words = wait_for_refusal(cluster, "Accepted=False ServiceAccountLacksRights").await?;
    anyhow::ensure!(
        ["Available=True", "Armed=True"]
            .iter()
            .all(|kept| words.contains(kept)),
        "the installed revision is not running: {words}"
    );
    succeed(&cluster.client, "POST", &collection(binding), Some(binding)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;

    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    gone(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    Ok(())
}

/// Waits until the conditions contain `reason`, and returns them as text.
async fn wait_for_refusal(cluster: &TestCluster, reason: &str) -> anyhow::Result<String> {
    until(reason, PATIENCE, async || {
        let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT)
            .await?
            .context("the BundleDeployment was deleted")?;
        let words = conditions(&object);
        Ok(if words.contains(reason) {
            Ok(words)
        } else {
            Err(words)
        })
    })
    .await
}

/// Returns the collection of a role or a binding.
fn collection(object: &Value) -> String {
    let plural = format!("{}s", text(object, "/kind").to_lowercase());
    match text(object, "/metadata/namespace") {
        "" => format!("{RBAC}/{plural}"),
        namespace => format!("{RBAC}/namespaces/{namespace}/{plural}"),
    }
}
