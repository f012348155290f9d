//! Objects and servers that policies refer to: changing objects, owners, and slow servers.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    guard::replicas::Replica,
    policies::{API, NAME, NAMESPACE, create_policy, install},
    traffic,
};
use crate::{
    operator,
    request::{RequestAnswer, send, text},
    steps::{PATIENCE, check, succeed, until},
    test_cluster::TestCluster,
};

/// A server that returns the forbidden value, or never answers.
struct AnswerServer {
    address: SocketAddr,
    is_silent: Arc<AtomicBool>,
    _connections: JoinSet<()>,
}

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";

/// How long a silent server takes: longer than any timeout.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) async fn policies_read_references_and_give_up_on_slow_servers(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    grant_reads(cluster, &[("", "configmaps")]).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let server = AnswerServer::start(cluster).await?;
    let mut part = cluster.policies_part("policies-one").await?;
    part.arguments.extend([
        format!("--policy-http-host={}", server.address),
        "--policy-http-cache=100ms".to_owned(),
    ]);
    let replica = Replica::start_behind(cluster, part, NAME)?;
    replica.running.ready().await?;
    replica.add_endpoint(cluster).await?;

    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let source = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}, "data": {"team": "red"}});
    let source = succeed(client, "POST", &maps, Some(&source)).await?;
    let of_object = json!({"from": "k8s", "path": "/data/team", "k8s": {
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": "source",
    }});
    let of_owner = json!({"from": "owner", "path": "/data/team"});
    for (name, reference) in [("copied", of_object), ("owned", of_owner)] {
        create_policy(
            cluster,
            "clusteroverridepolicies",
            &label_policy(name, &reference),
        )
        .await?;
    }
    let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "source", "uid": text(&source.body, "/metadata/uid")}]);
    for team in ["red", "blue"] {
        let changed = json!({"data": {"team": team}});
        succeed(client, "PATCH", &format!("{maps}/source"), Some(&changed)).await?;
        wait_for_label(cluster, "copied", &Value::Null, team).await?;
        wait_for_label(cluster, "owned", &owners, team).await?;
    }

    let policy = validate_policy(&format!("http://{}/", server.address));
    create_policy(cluster, "clustervalidatepolicies", &policy).await?;
    let judged =
        async |answer: &str| write(cluster, "judged", &Value::Null, &json!({"answer": answer})).await;
    until("the forbidden value is refused", PATIENCE, async || {
        let answer = judged("no").await?;
        let is_refused = answer.code == 403 && answer.body.to_string().contains("the server says no");
        Ok(check(is_refused, || answer.to_string()))
    })
    .await?;
    let allowed = judged("yes").await?;
    anyhow::ensure!(allowed.code == 201, "not allowed: {allowed}");

    server.is_silent.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Both writes run concurrently: only the policy that needs the server waits for it.
    let (failed, other) = tokio::join!(
        judged("yes"),
        write(cluster, "copied", &Value::Null, &Value::Null)
    );
    let (failed, other) = (failed?, other?);
    anyhow::ensure!(
        failed.code >= 400 && failed.body.to_string().contains("no answer in time"),
        "not refused with the cause: {failed}"
    );
    anyhow::ensure!(other.code == 201, "a slow server delays another policy: {other}");
    let path = format!("{API}/clustervalidatepolicies/judging");
    let ignoring = json!({"spec": {"failurePolicy": "Ignore"}});
    succeed(client, "PATCH", &path, Some(&ignoring)).await?;
    until(
        "a policy that cannot be evaluated is ignored",
        PATIENCE,
        async || {
            let answer = judged("yes").await?;
            Ok(check(answer.code == 201, || answer.to_string()))
        },
    )
    .await?;

    let mut stranger = validate_policy("https://stranger.example.com/");
    stranger["metadata"]["name"] = "stranger".into();
    let answer = send(
        client,
        "POST",
        &format!("{API}/clustervalidatepolicies"),
        Some(&stranger),
    )
    .await?;
    anyhow::ensure!(
        answer.code == 422 && answer.body.to_string().contains("condition.valueRef.http.url"),
        "a URL of a server that is not allowed was accepted: {answer}"
    );
    Ok(())
}

/// Allows the policy server to read resources of these API groups.
pub(super) async fn grant_reads(cluster: &TestCluster, resources: &[(&str, &str)]) -> anyhow::Result<()> {
    let name = "policies-read";
    let verbs = ["get", "list", "watch"];
    let rules: Vec<_> = resources
        .iter()
        .map(|(group, resource)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}))
        .collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": operator::NAMESPACE}],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        succeed(
            &cluster.client,
            "POST",
            &format!("{ROLES}/{plural}"),
            Some(&object),
        )
        .await?;
    }
    Ok(())
}

/// Returns a policy that labels the ConfigMap of its name with a team.
fn label_policy(name: &str, reference: &Value) -> Value {
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name}],
            "overrideRules": [{"targetOperations": ["CREATE"], "overriders": {"template": {
                "type": "labels", "operation": "add", "path": "team", "valueRef": reference,
            }}}],
        },
    })
}

/// Returns a policy that refuses the value that the server forbids.
fn validate_policy(url: &str) -> Value {
    let condition = json!({
        "cond": "Equal", "message": "the server says no", "dataRef": {"from": "current", "path": "/data/answer"},
        "valueRef": {"from": "http", "path": "body.forbidden", "http": {"url": url, "method": "GET"}},
    });
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy", "metadata": {"name": "judging"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "judged"}],
            "validateRules": [{
                "targetOperations": ["CREATE"], "template": {"type": "condition", "condition": condition},
            }],
        },
    })
}

/// Writes a ConfigMap as a dry run.
async fn write(
    cluster: &TestCluster,
    name: &str,
    owners: &Value,
    data: &Value,
) -> anyhow::Result<RequestAnswer> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
    let metadata = json!({"name": name, "ownerReferences": owners});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    send(&cluster.client, "POST", &path, Some(&object)).await
}

async fn wait_for_label(cluster: &TestCluster, name: &str, owners: &Value, team: &str) -> anyhow::Result<()> {
    until(&format!("{name} is labelled {team}"), PATIENCE, async || {
        let answer = write(cluster, name, owners, &Value::Null).await?;
        let is_labelled = answer.code == 201 && text(&answer.body, "/metadata/labels/team") == team;
        Ok(check(is_labelled, || answer.to_string()))
    })
    .await
}

impl AnswerServer {
    async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((cluster.backing.address(), 0)).await?;
        let address = listener.local_addr()?;
        let is_silent = Arc::new(AtomicBool::new(false));
        let silent = is_silent.clone();
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut answers = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                answers.spawn(answer(stream, silent.clone()));
            }
        });
        Ok(Self {
            address,
            is_silent,
            _connections: connections,
        })
    }
}

async fn answer(mut stream: TcpStream, is_silent: Arc<AtomicBool>) {
    let mut read = [0; 4096];
    while matches!(stream.read(&mut read).await, Ok(1..)) {
        if is_silent.load(Ordering::SeqCst) {
            tokio::time::sleep(SILENCE).await;
        }
        let body = json!({"forbidden": "no"}).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
