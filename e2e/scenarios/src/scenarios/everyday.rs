//! What users and the controllers of Kubernetes do beside an operation: kubectl, server-side apply, dry runs,
//! garbage collection, and the deletion of namespaces.

use std::process::Stdio;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    resource::{Expectation, Resource},
    sample,
    steps::gone,
    test_cluster::TestCluster,
};

/// Rounds of everyday commands.
pub(super) struct EverydayUse {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<u32>>,
}

/// The versions of every sample.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

impl EverydayUse {
    /// Repeats the commands until [`EverydayUse::finish`].
    pub(super) fn start(cluster: &TestCluster) -> Self {
        let stop = CancellationToken::new();
        let (client, stopped) = (cluster.client.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let mut rounds = 0;
            while !stopped.is_cancelled() {
                rounds += 1;
                run_round(&client, rounds)
                    .await
                    .with_context(|| format!("round {rounds} of everyday use"))?;
            }
            Ok(rounds)
        });
        Self { stop, task }
    }

    /// Ends after the current round, and returns the number of rounds.
    ///
    /// # Errors
    ///
    /// Fails if a command failed or an answer was wrong.
    pub(super) async fn finish(self) -> anyhow::Result<u32> {
        self.stop.cancel();
        self.task.await?
    }
}

async fn run_round(client: &kube::Client, round: u32) -> anyhow::Result<()> {
    let namespace = format!("everyday-{round}");
    let namespace = namespace.as_str();
    let inside = ["--namespace", namespace];
    kubectl(&["create", "namespace", namespace], None).await?;
    kubectl(&[&["create", "configmap", "owner"], &inside[..]].concat(), None).await?;
    let owner = read(&["configmap", "owner"], namespace).await?;

    let mut owned = named("owned");
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    let apply = ["apply", "--filename", "-"];
    kubectl(&[&apply, &inside[..]].concat(), Some(&owned)).await?;
    for arguments in [
        &["--server-side", "--dry-run=server"][..],
        &["--server-side"],
        &["--dry-run=server"],
    ] {
        kubectl(&[&apply, &inside[..], arguments].concat(), Some(&named("kept"))).await?;
    }
    let widgets = Resource::widgets(&VERSIONS, Expectation::Admitted);
    for version in VERSIONS {
        for name in ["owned", "kept"] {
            let kind = format!("widgets.{version}.{}", sample::GROUP);
            // The dry run after the apply must not have changed anything.
            let widget = read(&[&kind, name], namespace).await?;
            if let Some(problem) = widgets.problem(&widget) {
                anyhow::bail!("kubectl get {kind} {name}: {problem}");
            }
        }
    }
    // The garbage collector deletes what the owner leaves, and the namespace controller everything else.
    kubectl(&[&["delete", "configmap", "owner"], &inside[..]].concat(), None).await?;
    gone(client, &format!("{}/owned", sample::widgets(namespace, "v1"))).await?;
    let delete = ["delete", "namespace", namespace, "--wait", "--timeout", "120s"];
    kubectl(&delete, None).await.map(drop)
}

fn named(name: &str) -> Value {
    let mut widget = sample::widget("v1");
    widget["metadata"]["name"] = json!(name);
    widget
}

async fn read(object: &[&str], namespace: &str) -> anyhow::Result<Value> {
    let arguments = [&["get"], object, &["--namespace", namespace, "--output", "json"]].concat();
    Ok(serde_json::from_str(&kubectl(&arguments, None).await?)?)
}

/// Runs kubectl with an object as its input, and returns its output.
async fn kubectl(arguments: &[&str], object: Option<&Value>) -> anyhow::Result<String> {
    let command = arguments.join(" ");
    let mut child = Command::new("kubectl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting kubectl")?;
    let mut input = child.stdin.take().context("kubectl has no input")?;
    if let Some(object) = object {
        input.write_all(object.to_string().as_bytes()).await?;
    }
    drop(input);
    let output = child.wait_with_output().await?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "kubectl {command}: {error}");
    Ok(String::from_utf8(output.stdout)?)
}
