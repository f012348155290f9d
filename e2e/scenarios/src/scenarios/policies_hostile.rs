//! Hostile policies and servers, called for many objects at once, neither delay other requests nor exhaust
//! memory.

use std::{
    net::SocketAddr,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::{Either, join_all, select};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    policies::{
        NAMESPACE, config_map_policy, create_policy, install, join_with, wait_for_data, wait_for_webhooks,
    },
    traffic,
};
use crate::{
    request::{RequestAnswer, send},
    steps::{MUTATING, VALIDATING},
    test_cluster::TestCluster,
};

/// The namespace of a hostile tenant, who may write policies in it.
const HOSTILE: &str = "hostile";

/// The number of concurrent writes for each hostile policy.
const WRITES: usize = 8;

/// The maximum growth of the memory in bytes: a third of the limit in the manifests, and twice the usual
/// growth.
const GROWTH: u64 = 256 << 20;

/// Accepted errors on a machine that is too slow for all requests.
const BUSY: [&str; 3] = [
    "too many requests; try again later",
    "the program took too long",
    "the time for the request has run out",
];

/// A server that starts a response and never completes it.
struct DrippingServer {
    address: SocketAddr,
    _connections: JoinSet<()>,
}

/// A hostile policy, and an object that it matches.
struct HostilePolicy {
    name: &'static str,
    kind: &'static str,
    rule: Value,
    data: Value,
    /// Part of the error that it causes; `None` if the object is written.
    refusal: Option<&'static str>,
}

pub(super) async fn hostile_policies_neither_delay_other_writes_nor_exhaust_memory(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    for namespace in [NAMESPACE, HOSTILE] {
        traffic::create_namespace(cluster, namespace).await?;
    }
    let server = DrippingServer::start(cluster).await?;
    let arguments = [format!("--policy-http-host={}", server.address)];
    let replica = join_with(cluster, "policies-one", &arguments.each_ref().map(String::as_str)).await?;
    for folder in [MUTATING, VALIDATING] {
        wait_for_webhooks(cluster, folder, 1).await?;
    }
    let all = config_map_policy("ClusterOverridePolicy", "all", "Fail");
    create_policy(cluster, "clusteroverridepolicies", &all).await?;
    let hostile = HostilePolicy::all(server.address);
    for policy in &hostile {
        create_policy(cluster, &policy.folder(), &policy.object()).await?;
    }
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await?;

    let before = replica.running.memory()?;
    let writes = (0..WRITES)
        .flat_map(|_| &hostile)
        .map(|policy| policy.write(cluster));
    let answered = AtomicUsize::new(0);
    let others = write_until_one_fails(cluster, &answered);
    let answers = match select(pin!(join_all(writes)), pin!(others)).await {
        Either::Left((answers, _)) => answers,
        Either::Right((failed, _)) => return failed,
    };
    let answered = answered.into_inner();
    anyhow::ensure!(answered > 0, "no other request was answered");
    let answers = answers.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    for policy in &hostile {
        let own = answers.iter().filter(|(name, _)| *name == policy.name);
        policy.check(own.map(|(_, answer)| answer))?;
    }
    // The process has not restarted.
    let growth = replica.running.peak_memory()?.saturating_sub(before);
    tracing::info!(answered, growth, "Called hostile policies");
    anyhow::ensure!(growth < GROWTH, "memory grew by {growth} bytes from {before}");
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await
}

/// Writes objects that no hostile policy matches, one after the other, and counts them. Returns an error if a
/// write fails.
async fn write_until_one_fails(cluster: &TestCluster, answered: &AtomicUsize) -> anyhow::Result<()> {
    loop {
        let answer = write(cluster, NAMESPACE, "other", &Value::Null).await?;
        let is_overridden = answer.code == 201 && answer.body["data"] == json!({"all": "all"});
        let count = answered.fetch_add(1, Ordering::Relaxed);
        anyhow::ensure!(is_overridden, "write {count} of another tenant failed: {answer}");
    }
}

/// Writes a ConfigMap as a dry run.
async fn write(
    cluster: &TestCluster,
    namespace: &str,
    name: &str,
    data: &Value,
) -> anyhow::Result<RequestAnswer> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    send(&cluster.client, "POST", &path, Some(&object)).await
}

impl HostilePolicy {
    /// Returns one policy of each sort, two of them for objects so large that few fit into memory at once.
    fn all(server: SocketAddr) -> Vec<Self> {
        let long = || json!({"text": "a".repeat(900_000)});
        let loops = (0..8)
            .map(|index| format!("for x{index} in l "))
            .collect::<String>();
        let loops = format!("l: [{}]\nfound: [{loops}{{x0}}]\n", vec!["1"; 100].join(","));
        let doubling = (1..60)
            .map(|index| format!("f{index}: \"\\(f{0})\\(f{0})\"\n", index - 1))
            .collect::<String>();
        let mut nested = json!(1);
        for _ in 0..40 {
            nested = json!({"a": [nested]});
        }
        // API servers do not support such data, so it is removed at the end.
        let nesting: Vec<_> = (0..20)
            .map(|depth| json!({"op": "add", "path": format!("/data{}", "/a/0".repeat(depth)), "value": nested}))
            .chain([json!({"op": "remove", "path": "/data"})])
            .collect();
        let reference = json!({"from": "http", "path": "body", "http": {
            "url": format!("http://{server}/"), "method": "GET",
        }});
        let cue = |program: String| json!({"overriders": {"cue": program}});
        let large = Some("values of the program are too large");
        vec![
            Self::override_policy(
                "recursion",
                cue("a: {b: a & {c: 1}}\npatches: [a]".to_owned()),
                Value::Null,
                Some("nested too deep"),
            ),
            Self::override_policy("loops", cue(format!("{loops}patches: found")), long(), large),
            Self::override_policy(
                "doubling",
                cue(format!("f0: \"xxxxxxxxxxxxxxxx\"\n{doubling}patches: [f59]")),
                Value::Null,
                large,
            ),
            Self::override_policy(
                "literal",
                cue(format!(
                    "patches: [{{op: \"add\", path: \"/data/x\", value: {:?}}}]",
                    "a".repeat(64_000)
                )),
                json!({"a": "b"}),
                None,
            ),
            Self::override_policy(
                "pattern",
                json!({"overriders": {"cel": {
                    "expression": "object.data.text.matches('(a|aa)+(x+x+)+y') ? [] : []",
                }}}),
                json!({"text": "a".repeat(60_000)}),
                None,
            ),
            Self::override_policy(
                "nesting",
                json!({"overriders": {"plaintext": nesting}}),
                Value::Null,
                None,
            ),
            Self::override_policy(
                "dripping",
                json!({"overriders": {"template": {
                    "type": "labels", "operation": "add", "path": "team", "valueRef": reference,
                }}}),
                Value::Null,
                Some("no answer in time"),
            ),
            Self {
                name: "judging",
                kind: "ClusterValidatePolicy",
                rule: json!({"cue": format!("{loops}validate: {{valid: len(found) > 0, reason: \"\"}}")}),
                data: long(),
                refusal: large,
            },
        ]
    }

    fn override_policy(name: &'static str, rule: Value, data: Value, refusal: Option<&'static str>) -> Self {
        Self {
            name,
            kind: "OverridePolicy",
            rule,
            data,
            refusal,
        }
    }

    fn folder(&self) -> String {
        match self.kind {
            "OverridePolicy" => format!("namespaces/{HOSTILE}/overridepolicies"),
            _ => "clustervalidatepolicies".to_owned(),
        }
    }

    /// Its failurePolicy is `Fail`, so that it is never suspended.
    fn object(&self) -> Value {
        let rules = match self.kind {
            "OverridePolicy" => "overrideRules",
            _ => "validateRules",
        };
        let mut rule = self.rule.clone();
        rule["targetOperations"] = json!(["CREATE"]);
        json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": self.kind, "metadata": {"name": self.name},
            "spec": {
                "failurePolicy": "Fail",
                "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": self.name}],
                rules: [rule],
            },
        })
    }

    async fn write(&self, cluster: &TestCluster) -> anyhow::Result<(&'static str, RequestAnswer)> {
        let answer = write(cluster, HOSTILE, self.name, &self.data).await?;
        Ok((self.name, answer))
    }

    /// Checks that every write was answered in time, either with the expected outcome or because of too many
    /// requests.
    fn check<'a>(&self, answers: impl Iterator<Item = &'a RequestAnswer>) -> anyhow::Result<()> {
        let mut deserved = 0;
        for answer in answers {
            let message = answer.message();
            let is_deserved = match self.refusal {
                Some(reason) => {
                    answer.is_denied() && [self.name, reason].iter().all(|part| message.contains(part))
                }
                None => answer.code == 201,
            };
            let is_busy = BUSY.iter().any(|busy| message.contains(busy));
            anyhow::ensure!(is_deserved || is_busy, "{}: {answer}", self.name);
            deserved += usize::from(is_deserved);
        }
        anyhow::ensure!(deserved > 0, "{}: no write had the expected outcome", self.name);
        tracing::info!(policy = self.name, deserved, "Answered");
        Ok(())
    }
}

impl DrippingServer {
    async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((cluster.backing.address(), 0)).await?;
        let address = listener.local_addr()?;
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut answers = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                answers.spawn(send_endlessly(stream));
            }
        });
        Ok(Self {
            address,
            _connections: connections,
        })
    }
}

async fn send_endlessly(mut stream: TcpStream) {
    let mut request = [0; 4096];
    if !matches!(stream.read(&mut request).await, Ok(1..)) {
        return;
    }
    let mut written = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\"").await;
    while written.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        written = stream.write_all(b"a").await;
    }
}
