//! Policies under churn: many at once, one that is created and deleted repeatedly, a deleted certificate, and
//! a deleted namespace with policies. No write fails. Then a leader is killed while it arms a policy.

use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::{
    guard::replicas::Replica,
    policies::{self, API, NAME, NAMESPACE, PRE_STOP},
    traffic,
};
use crate::{
    operator,
    request::text,
    steps::{MUTATING, PATIENCE, check, get, gone, succeed, until},
    test_cluster::TestCluster,
};

/// The number of policies that are created at once.
const MANY: usize = 300;

/// The number of concurrent requests.
const AT_ONCE: usize = 8;

/// How often one policy is created and deleted.
const TIMES: u64 = 10;

const CLUSTER_WIDE: &str = "clusteroverridepolicies";

/// A namespace that is deleted.
const SHORT_LIVED: &str = "short-lived";

pub(super) async fn no_write_fails_while_many_policies_are_created_and_deleted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let mut replicas = Vec::new();
    for pod in ["policies-one", "policies-other"] {
        replicas.push(policies::join(cluster, pod).await?);
    }
    let all = policies::config_map_policy("ClusterOverridePolicy", "all", "Fail");
    policies::create_policy(cluster, CLUSTER_WIDE, &all).await?;
    policies::wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await?;
    let night = async {
        create_and_delete_many(cluster).await.context("many policies")?;
        create_and_delete_repeatedly(cluster)
            .await
            .context("a policy that is created and deleted repeatedly")?;
        delete_secret(cluster).await.context("a deleted certificate")?;
        delete_namespace(cluster).await.context("a deleted namespace")
    };
    tokio::select! {
        passed = night => passed,
        failed = policies::write_until_one_fails(cluster, "one") => failed,
        failed = policies::write_until_one_fails(cluster, "other") => failed,
    }?;
    // Without concurrent writes: API servers reuse connections, and a request to a process that is killed is
    // lost.
    kill_leader(cluster, &mut replicas)
        .await
        .context("a killed leader")
}

/// Returns a policy for the written ConfigMaps, or (each second one) for a Secret that is never written.
fn numbered_policy(index: usize) -> Value {
    let mut policy = policies::config_map_policy("ClusterOverridePolicy", &format!("nth-{index}"), "Fail");
    if index.is_multiple_of(2) {
        policy["spec"]["resourceSelectors"] =
            json!([{"apiVersion": "v1", "kind": "Secret", "name": format!("s-{index}")}]);
    }
    policy
}

/// Creates many policies at once, then deletes them at once.
async fn create_and_delete_many(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = format!("{API}/{CLUSTER_WIDE}");
    let created = stream::iter(0..MANY)
        .map(async |index| succeed(&cluster.client, "POST", &folder, Some(&numbered_policy(index))).await);
    let created: Vec<_> = created.buffer_unordered(AT_ONCE).try_collect().await?;
    anyhow::ensure!(created.len() == MANY, "{} were created", created.len());
    let last = json!(
        (0..MANY)
            .filter(|index| index % 2 == 1)
            .map(|index| format!("nth-{index}"))
            .chain(["all".to_owned()])
            .map(|name| (name.clone(), name))
            .collect::<std::collections::BTreeMap<_, _>>()
    );
    until(
        "every policy applies to a new ConfigMap",
        PATIENCE * 2,
        async || {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
            let answer = succeed(&cluster.client, "POST", &path, Some(&object)).await?;
            Ok(check(answer.body["data"] == last, || {
                format!(
                    "{:?} of {MANY}",
                    answer.body["data"].as_object().map(serde_json::Map::len)
                )
            }))
        },
    )
    .await?;
    let deleted = stream::iter(0..MANY).map(async |index| {
        let path = format!("{folder}/nth-{index}");
        succeed(&cluster.client, "DELETE", &path, None).await
    });
    let _: Vec<_> = deleted.buffer_unordered(AT_ONCE).try_collect().await?;
    policies::wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await
}

/// Creates and deletes a policy repeatedly, sometimes before it is ready.
async fn create_and_delete_repeatedly(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = format!("{API}/{CLUSTER_WIDE}");
    let policy = policies::config_map_policy("ClusterOverridePolicy", "flapping", "Fail");
    for time in 0..TIMES {
        if time.is_multiple_of(2) {
            policies::create_policy(cluster, CLUSTER_WIDE, &policy).await?;
        } else {
            succeed(&cluster.client, "POST", &folder, Some(&policy)).await?;
            tokio::time::sleep(Duration::from_millis(50 * time)).await;
        }
        succeed(&cluster.client, "DELETE", &format!("{folder}/flapping"), None).await?;
    }
    policies::wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await
}

/// Deletes the Secret of the serving certificate, which is recreated and served.
async fn delete_secret(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let certificate = cluster.settled(operator::NAMESPACE, NAME).await?;
    let secret = text(&certificate, "/spec/secretName");
    let path = format!("/api/v1/namespaces/{}/secrets/{secret}", operator::NAMESPACE);
    let uid = |secret: &Value| text(secret, "/metadata/uid").to_owned();
    let before = get(client, &path).await?.context("no Secret")?;
    succeed(client, "DELETE", &path, None).await?;
    until("the Secret is recreated", PATIENCE, async || {
        let now = get(client, &path).await?.unwrap_or_default();
        let is_new = !uid(&now).is_empty() && uid(&now) != uid(&before);
        Ok(check(is_new, || uid(&now)))
    })
    .await?;
    cluster.settled(operator::NAMESPACE, NAME).await?;
    Ok(())
}

/// Deletes a namespace with policies in it.
async fn delete_namespace(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    traffic::create_namespace(cluster, SHORT_LIVED).await?;
    let folder = format!("namespaces/{SHORT_LIVED}/overridepolicies");
    for name in ["own", "another"] {
        let policy = policies::config_map_policy("OverridePolicy", name, "Fail");
        policies::create_policy(cluster, &folder, &policy).await?;
    }
    let data = json!({"all": "all", "another": "another", "own": "own"});
    policies::wait_for_data(cluster, SHORT_LIVED, &data).await?;
    let namespace = format!("/api/v1/namespaces/{SHORT_LIVED}");
    succeed(client, "DELETE", &namespace, None).await?;
    gone(client, &namespace).await?;
    until("no webhook matches the namespace", PATIENCE, async || {
        let configuration = get(client, &format!("{MUTATING}/{NAME}"))
            .await?
            .unwrap_or_default();
        let shown = configuration["webhooks"].to_string();
        Ok(check(!shown.contains(SHORT_LIVED), || shown.clone()))
    })
    .await
}

/// Kills the leader, which is not an endpoint, while it arms a new policy; the other replica continues.
async fn kill_leader(cluster: &TestCluster, replicas: &mut Vec<Replica>) -> anyhow::Result<()> {
    let client = &cluster.client;
    let mut leader = None;
    for (index, replica) in replicas.iter().enumerate() {
        if replica.running.leads().await? {
            leader = Some(index);
        }
    }
    let leader = replicas.remove(leader.context("no leader")?);
    replicas.push(policies::join(cluster, "policies-third").await?);
    leader.remove_endpoint(cluster).await?;
    tokio::time::sleep(PRE_STOP).await;
    let folder = format!("{API}/{CLUSTER_WIDE}");
    let policy = policies::config_map_policy("ClusterOverridePolicy", "orphan", "Fail");
    succeed(client, "POST", &folder, Some(&policy)).await?;
    leader.running.kill().await?;
    policies::wait_for_data(cluster, NAMESPACE, &json!({"all": "all", "orphan": "orphan"})).await?;
    policies::create_policy(
        cluster,
        CLUSTER_WIDE,
        &policies::config_map_policy("ClusterOverridePolicy", "next", "Fail"),
    )
    .await
}
