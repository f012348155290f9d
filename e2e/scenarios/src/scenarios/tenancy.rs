//! Installs as a ServiceAccount.

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

/// What an account lacks is printed, and nothing is written; granted as it is printed, it is enough, and for the removal, too. What
/// runs keeps running when rights go.
pub(super) async fn a_bundle_gets_no_rights_that_its_account_lacks(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::namespace(cluster, sample::NAMESPACE).await?;
    cluster.bundle("sample.v1")?;
    let mut object = steps::bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    object["spec"]["serviceAccountName"] = json!("tenant");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    refused(cluster, "Accepted=False ServiceAccountNotFound").await?;
    let account = json!({"metadata": {"name": "tenant"}});
    succeed(&cluster.client, "POST", ACCOUNTS, Some(&account)).await?;
    let words = refused(cluster, "Accepted=False ServiceAccountLacksRights").await?;
    // The bundle gives its operator a right, which nobody may give who lacks it.
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
        .context("nothing was missing in the whole cluster")?;
    let path = format!("{}/{}", collection(binding), text(binding, "/metadata/name"));
    delete(&cluster.client, &path).await?;
    // Any change has Windlass look again at once.
    let change = json!({"spec": {"upgrade": {"allowInterruption": true}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&change)).await?;
    let words = refused(cluster, "Accepted=False ServiceAccountLacksRights").await?;
    anyhow::ensure!(
        ["Available=True", "Armed=True"]
            .iter()
            .all(|kept| words.contains(kept)),
        "what is installed does not run any more: {words}"
    );
    succeed(&cluster.client, "POST", &collection(binding), Some(binding)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;

    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    gone(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    Ok(())
}

/// Waits until the conditions say `reason`; all of them in words.
async fn refused(cluster: &TestCluster, reason: &str) -> anyhow::Result<String> {
    until(reason, PATIENCE, async || {
        let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT)
            .await?
            .context("the BundleDeployment is gone")?;
        let words = conditions(&object);
        Ok(if words.contains(reason) {
            Ok(words)
        } else {
            Err(words)
        })
    })
    .await
}

/// Where a role or a binding is created.
fn collection(object: &Value) -> String {
    let plural = format!("{}s", text(object, "/kind").to_lowercase());
    match text(object, "/metadata/namespace") {
        "" => format!("{RBAC}/{plural}"),
        namespace => format!("{RBAC}/namespaces/{namespace}/{plural}"),
    }
}
