//! What a bad night brings to policies: many at once, one that comes and goes, a lost certificate, a namespace that goes with its
//! policies. Writes go on meanwhile, and none fails. Then a leader dies while it arms.

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

/// How many policies are created at once.
const MANY: usize = 300;

/// How many requests of the admin are under way.
const AT_ONCE: usize = 8;

/// How often a policy comes and goes.
const TIMES: u64 = 10;

const CLUSTER_WIDE: &str = "clusteroverridepolicies";

/// A namespace that goes.
const SHORT_LIVED: &str = "short-lived";

pub(super) async fn no_write_fails_while_policies_come_and_go_in_numbers(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::namespace(cluster, NAMESPACE).await?;
    let mut replicas = Vec::new();
    for pod in ["policies-one", "policies-other"] {
        replicas.push(policies::join(cluster, pod).await?);
    }
    let all = policies::policy("ClusterOverridePolicy", "all", "Fail");
    policies::ready(cluster, CLUSTER_WIDE, &all).await?;
    policies::overridden(cluster, NAMESPACE, &json!({"all": "all"})).await?;
    let night = async {
        many(cluster).await.context("many policies")?;
        flapping(cluster).await.context("a policy that comes and goes")?;
        without_secret(cluster).await.context("a lost certificate")?;
        namespace_goes(cluster).await.context("a namespace that goes")
    };
    tokio::select! {
        passed = night => passed,
        failed = policies::write_until_one_fails(cluster, "one") => failed,
        failed = policies::write_until_one_fails(cluster, "other") => failed,
    }?;
    // Not amid writes: API servers go on asking on connections that they have, and what a process is asked when it is killed is lost.
    leader_dies(cluster, &mut replicas)
        .await
        .context("a leader that dies")
}

/// A policy for objects of a kind of its own, which nobody writes, and one for what is written.
fn nth(index: usize) -> Value {
    let mut policy = policies::policy("ClusterOverridePolicy", &format!("nth-{index}"), "Fail");
    if index.is_multiple_of(2) {
        policy["spec"]["resourceSelectors"] =
            json!([{"apiVersion": "v1", "kind": "Secret", "name": format!("s-{index}")}]);
    }
    policy
}

/// Creates many policies at once, and deletes them at once.
async fn many(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = format!("{API}/{CLUSTER_WIDE}");
    let created = stream::iter(0..MANY)
        .map(async |index| succeed(&cluster.client, "POST", &folder, Some(&nth(index))).await);
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
    until("what is written is overridden by all", PATIENCE * 2, async || {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        let answer = succeed(&cluster.client, "POST", &path, Some(&object)).await?;
        Ok(check(answer.body["data"] == last, || {
            format!(
                "{:?} of {MANY}",
                answer.body["data"].as_object().map(serde_json::Map::len)
            )
        }))
    })
    .await?;
    let deleted = stream::iter(0..MANY).map(async |index| {
        let path = format!("{folder}/nth-{index}");
        succeed(&cluster.client, "DELETE", &path, None).await
    });
    let _: Vec<_> = deleted.buffer_unordered(AT_ONCE).try_collect().await?;
    policies::overridden(cluster, NAMESPACE, &json!({"all": "all"})).await
}

/// A policy is created and deleted again and again, sometimes before it is asked.
async fn flapping(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = format!("{API}/{CLUSTER_WIDE}");
    let policy = policies::policy("ClusterOverridePolicy", "flapping", "Fail");
    for time in 0..TIMES {
        if time.is_multiple_of(2) {
            policies::ready(cluster, CLUSTER_WIDE, &policy).await?;
        } else {
            succeed(&cluster.client, "POST", &folder, Some(&policy)).await?;
            tokio::time::sleep(Duration::from_millis(50 * time)).await;
        }
        succeed(&cluster.client, "DELETE", &format!("{folder}/flapping"), None).await?;
    }
    policies::overridden(cluster, NAMESPACE, &json!({"all": "all"})).await
}

/// The Secret of the certificate is deleted: it comes back, and is served.
async fn without_secret(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let certificate = cluster.settled(operator::NAMESPACE, NAME).await?;
    let secret = text(&certificate, "/spec/secretName");
    let path = format!("/api/v1/namespaces/{}/secrets/{secret}", operator::NAMESPACE);
    let uid = |secret: &Value| text(secret, "/metadata/uid").to_owned();
    let before = get(client, &path).await?.context("no Secret")?;
    succeed(client, "DELETE", &path, None).await?;
    until("there is another Secret", PATIENCE, async || {
        let now = get(client, &path).await?.unwrap_or_default();
        let is_new = !uid(&now).is_empty() && uid(&now) != uid(&before);
        Ok(check(is_new, || uid(&now)))
    })
    .await?;
    cluster.settled(operator::NAMESPACE, NAME).await?;
    Ok(())
}

/// A namespace is deleted while there are policies in it.
async fn namespace_goes(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    traffic::namespace(cluster, SHORT_LIVED).await?;
    let folder = format!("namespaces/{SHORT_LIVED}/overridepolicies");
    for name in ["own", "another"] {
        let policy = policies::policy("OverridePolicy", name, "Fail");
        policies::ready(cluster, &folder, &policy).await?;
    }
    let data = json!({"all": "all", "another": "another", "own": "own"});
    policies::overridden(cluster, SHORT_LIVED, &data).await?;
    let namespace = format!("/api/v1/namespaces/{SHORT_LIVED}");
    succeed(client, "DELETE", &namespace, None).await?;
    gone(client, &namespace).await?;
    until("nobody is asked about it", PATIENCE, async || {
        let configuration = get(client, &format!("{MUTATING}/{NAME}"))
            .await?
            .unwrap_or_default();
        let shown = configuration["webhooks"].to_string();
        Ok(check(!shown.contains(SHORT_LIVED), || shown.clone()))
    })
    .await
}

/// The leader, which answers no more, is killed while it arms what was just created: the other takes it up.
async fn leader_dies(cluster: &TestCluster, replicas: &mut Vec<Replica>) -> anyhow::Result<()> {
    let client = &cluster.client;
    let mut leader = None;
    for (index, replica) in replicas.iter().enumerate() {
        if replica.running.leads().await? {
            leader = Some(index);
        }
    }
    let leader = replicas.remove(leader.context("nobody leads")?);
    replicas.push(policies::join(cluster, "policies-third").await?);
    leader.leave(cluster).await?;
    tokio::time::sleep(PRE_STOP).await;
    let folder = format!("{API}/{CLUSTER_WIDE}");
    let policy = policies::policy("ClusterOverridePolicy", "orphan", "Fail");
    succeed(client, "POST", &folder, Some(&policy)).await?;
    leader.running.kill().await?;
    policies::overridden(cluster, NAMESPACE, &json!({"all": "all", "orphan": "orphan"})).await?;
    policies::ready(
        cluster,
        CLUSTER_WIDE,
        &policies::policy("ClusterOverridePolicy", "next", "Fail"),
    )
    .await
}
