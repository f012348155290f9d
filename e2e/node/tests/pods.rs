//! The node on a sandbox: pods come, are refreshed, and go.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

use std::{fs, path::Path, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use windlass_node::{NodeOptions, Program, log_path};
use windlass_sandbox::Sandbox;

const PATIENCE: Duration = Duration::from_secs(30);

/// Says what is in the mounted file whenever that changes, and goodbye.
const WATCHER: &str = r#"
file=$(echo "$WINDLASS_MOUNTS" | sed 's/.*"\/etc\/note":"\([^"]*\)".*/\1/')/note
trap 'echo bye; exit 0' TERM
echo "address $POD_IP, variable $NOTE"
while :; do
    now=$(cat "$file")
    [ "$now" = "$before" ] || echo "note $now"
    before=$now
    sleep 0.05
done"#;

/// A node on a sandbox.
struct TestNode {
    client: Client,
    directory: TempDir,
    stop: CancellationToken,
    node: JoinHandle<()>,
    _sandbox: Sandbox,
}

impl TestNode {
    async fn start() -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let sandbox = Sandbox::start(windlass_sandbox::SandboxOptions::default())
            .await
            .unwrap();
        let kubeconfig =
            Kubeconfig::from_yaml(&sandbox.kubeconfig("admin", &["system:masters"]).unwrap()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        let client = Client::try_from(config).unwrap();
        let directory = TempDir::new().unwrap();
        let shell = Program {
            path: "sh".into(),
            arguments: Vec::new(),
        };
        let options = NodeOptions {
            images: [("shell".to_owned(), shell.clone())].into(),
            stand_in: shell,
            refresh_delay: Duration::ZERO..=Duration::from_millis(100),
            speed: 10.0,
            directory: directory.path().to_owned(),
            ..NodeOptions::default()
        };
        let stop = CancellationToken::new();
        let running = windlass_node::run(client.clone(), options, stop.clone());
        let node = tokio::spawn(async move { running.await.unwrap() });
        Self {
            client,
            directory,
            stop,
            node,
            _sandbox: sandbox,
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, pod: &Value) {
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn write_note(&self, text: &str) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "note"}, "stringData": {"note": text}});
        let manager = PatchParams::apply("test").force();
        self.secrets()
            .patch("note", &manager, &Patch::Apply(secret))
            .await
            .unwrap();
    }

    /// Waits until the pod is as it should be; `None` is a pod that is gone.
    async fn see(&self, pod: &str, what: &str, check: impl Fn(Option<&Value>) -> bool) {
        eventually(what, async || {
            let pod = self.pods().get_opt(pod).await.unwrap();
            check(pod.map(|pod| serde_json::to_value(pod).unwrap()).as_ref())
        })
        .await;
    }

    /// Waits until a container has said something.
    async fn hear(&self, pod: &str, container: &str, words: &str) {
        let path = log_path(self.directory.path(), "default", pod, container);
        let what = format!("{pod} says {words:?}");
        eventually(&what, async || {
            fs::read_to_string(&path).is_ok_and(|log| log.contains(words))
        })
        .await;
    }
}

async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("timed out: {what}"));
}

fn condition(pod: &Value, type_: &str) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some(found["status"].as_str()?.to_owned())
}

fn waiting(pod: Option<&Value>) -> Value {
    pod.map(|pod| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone())
        .unwrap_or_default()
}

fn watcher() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "watcher"},
        "spec": {
            "terminationGracePeriodSeconds": 20,
            "containers": [{
                "name": "main", "image": "shell", "command": ["sh", "-c", WATCHER],
                "env": [{"name": "NOTE", "valueFrom": {"secretKeyRef": {"name": "note", "key": "note"}}}],
                "volumeMounts": [{"name": "note", "mountPath": "/etc/note"}],
                "readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 1},
                "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
            }],
            "volumes": [{"name": "note", "secret": {"secretName": "note"}}],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_waits_for_its_secret_sees_its_changes_and_ends_in_order() {
    let node = TestNode::start().await;
    node.create(&watcher()).await;
    let missing = json!({"reason": "ContainerCreating", "message": "secret \"note\" not found"});
    node.see("watcher", "the pod says what is missing", |pod| {
        waiting(pod) == missing
    })
    .await;

    node.write_note("one").await;
    node.see("watcher", "the pod is ready", |pod| {
        pod.is_some_and(|pod| condition(pod, "Ready").as_deref() == Some("True"))
    })
    .await;
    let pod = node.pods().get("watcher").await.unwrap();
    let address = pod.status.unwrap().pod_ip.unwrap();
    node.hear("watcher", "main", &format!("address {address}, variable one\n"))
        .await;
    node.hear("watcher", "main", "note one\n").await;

    node.write_note("two").await;
    node.hear("watcher", "main", "note two\n").await;

    node.pods()
        .delete("watcher", &DeleteParams::default())
        .await
        .unwrap();
    // preStop goes on for a second.
    node.see("watcher", "a pod that ends is not ready", |pod| {
        pod.is_some_and(|pod| condition(pod, "Ready").as_deref() == Some("False"))
    })
    .await;
    node.see("watcher", "the pod is removed", |pod| pod.is_none())
        .await;
    node.hear("watcher", "main", "bye\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_fails_is_restarted_and_one_that_is_done_stays() {
    let node = TestNode::start().await;
    let pod = |name: &str, policy: &str, script: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "restartPolicy": policy,
            "containers": [{"name": "main", "image": "shell", "command": ["sh", "-c", script]}],
        }})
    };
    node.create(&pod("failing", "Always", "exit 3")).await;
    node.create(&pod("done", "OnFailure", "exit 0")).await;
    node.see("failing", "it is restarted with a back-off", |pod| {
        let status = &pod
            .map(|pod| pod["status"]["containerStatuses"][0].clone())
            .unwrap_or_default();
        status["restartCount"].as_u64() >= Some(2) && status["lastState"]["terminated"]["exitCode"] == 3
    })
    .await;
    node.see("done", "it has succeeded", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Succeeded")
    })
    .await;
    node.pods()
        .delete("done", &DeleteParams::default())
        .await
        .unwrap();
    node.see("done", "it is removed", |pod| pod.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_does_not_start_or_is_not_alive_is_restarted() {
    let node = TestNode::start().await;
    let failing = json!({"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2});
    for probe in ["startupProbe", "livenessProbe"] {
        let name = probe.to_lowercase();
        let mut container =
            json!({"name": "main", "image": "shell", "command": ["sh", "-c", "exec sleep 600"]});
        container[probe] = failing.clone();
        node.create(
            &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
                "containers": [container],
            }}),
        )
        .await;
        node.see(&name, "its container is restarted", |pod| {
            let status = &pod
                .map(|pod| pod["status"]["containerStatuses"][0].clone())
                .unwrap_or_default();
            status["restartCount"].as_u64() >= Some(1) && status["lastState"]["terminated"]["exitCode"] == 143
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_ready_and_its_processes_end_with_it() {
    let node = TestNode::start().await;
    let nodes: Api<Node> = Api::all(node.client.clone());
    eventually("the node is ready", async || {
        let node = nodes
            .list(&kube::api::ListParams::default())
            .await
            .unwrap()
            .items
            .pop();
        node.is_some_and(|node| {
            assert_eq!(node.name_any(), "node");
            condition(&serde_json::to_value(node).unwrap(), "Ready").as_deref() == Some("True")
        })
    })
    .await;
    node.create(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sleeper"}, "spec": {
        "containers": [{"name": "main", "image": "shell", "command": ["sh", "-c", "echo pid $$$$; exec sleep 600"]}],
    }}))
    .await;
    node.hear("sleeper", "main", "pid ").await;
    let log = fs::read_to_string(log_path(node.directory.path(), "default", "sleeper", "main")).unwrap();
    let entry = Path::new("/proc").join(log.trim().strip_prefix("pid ").unwrap());
    assert!(entry.exists());
    node.stop.cancel();
    timeout(PATIENCE, node.node)
        .await
        .expect("the node ends")
        .unwrap();
    eventually("the process has ended", async || {
        fs::read_to_string(entry.join("stat")).map_or(true, |stat| stat.contains(") Z "))
    })
    .await;
}
