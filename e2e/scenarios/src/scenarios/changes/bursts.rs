//! Bursts of concurrent requests, which make the API server open new connections to webhook servers.

use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::traffic;
use crate::{request, sample, steps, test_cluster::TestCluster};

/// The size of a burst. client-go keeps 25 idle connections to a host (`tlsTransportCache.get`,
/// `idleConnsPerHost`), so a larger burst opens new ones.
const BURST_SIZE: usize = 60;

/// The pause between two bursts.
const PAUSE: Duration = Duration::from_millis(500);

/// The namespace of the object that is read.
const NAMESPACE: &str = "bursts";

/// Bursts of reads of one stored object in another version. Each read calls the conversion webhook.
pub(super) struct Bursts {
    stop: CancellationToken,
    task: JoinHandle<BurstReport>,
}

/// The results of the bursts.
#[derive(Clone, Debug, Default)]
pub(super) struct BurstReport {
    pub(super) requests: usize,
    pub(super) failures: Vec<String>,
}

impl Bursts {
    pub(super) async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        traffic::create_namespace(cluster, NAMESPACE).await?;
        let mut widget = sample::widget("v1");
        widget["metadata"] = json!({"name": "read"});
        let path = sample::widgets(NAMESPACE, "v1");
        steps::succeed(&cluster.client, "POST", &path, Some(&widget)).await?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(burst(cluster.client.clone(), stop.clone()));
        Ok(Self { stop, task })
    }

    pub(super) async fn finish(self) -> anyhow::Result<BurstReport> {
        self.stop.cancel();
        Ok(self.task.await?)
    }
}

async fn burst(client: Client, stop: CancellationToken) -> BurstReport {
    let path = format!("{}/read", sample::widgets(NAMESPACE, "v1beta1"));
    let mut seen = BurstReport::default();
    while !stop.is_cancelled() {
        let reads = (0..BURST_SIZE).map(|_| request::send_patiently(&client, "GET", &path, None));
        for answer in join_all(reads).await {
            seen.requests += 1;
            match answer {
                Ok(answer) if answer.body["spec"]["width"] == "42" => {}
                Ok(answer) => seen.failures.push(format!("GET {path}: {answer}")),
                Err(error) => seen.failures.push(format!("GET {path}: {error:#}")),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    seen
}
