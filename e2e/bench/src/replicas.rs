//! Several replicas of the operator, one of which leads.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::Mutex;
use windlass_scenarios::{
    operator::{OperatorProcess, Running},
    steps::{PATIENCE, until},
    test_cluster::TestCluster,
};

use super::preloaded::PreloadedWorld;

/// How long after its end a replica is started again, as by a kubelet.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The replicas that run, each in the place of the one that ended before.
pub(super) struct OperatorReplicas {
    program: OperatorProcess,
    running: Mutex<Vec<Running>>,
    /// How many there were: each has a name of its own, since the Lease goes on naming one that was killed.
    started: Mutex<u32>,
}

impl OperatorReplicas {
    /// Starts so many, and waits until one leads and each has seen everything.
    pub(super) async fn start(
        cluster: &TestCluster,
        count: usize,
        world: Option<&PreloadedWorld>,
    ) -> anyhow::Result<Self> {
        let mut program = cluster.operator.clone();
        if let Some(world) = world {
            program.environment.extend(world.environment());
        }
        let replicas = Self {
            program,
            running: Mutex::default(),
            started: Mutex::default(),
        };
        for _ in 0..count {
            let replica = replicas.next().await?;
            replica.ready().await?;
            replicas.running.lock().await.push(replica);
        }
        replicas.is_led().await?;
        Ok(replicas)
    }

    async fn next(&self) -> anyhow::Result<Running> {
        let mut started = self.started.lock().await;
        *started += 1;
        self.program.replica(&format!("night-{started}")).start()
    }

    /// Kills the leader (`kill -9`), and starts another replica. How long it took until the next one led.
    pub(super) async fn kill_leader(&self) -> anyhow::Result<Duration> {
        self.is_led().await?;
        let mut running = self.running.lock().await;
        let leader = leader(&running).await?.context("nobody leads any more")?;
        let killed = Instant::now();
        running.remove(leader).crash().await?;
        running.push(self.next().await?);
        drop(running);
        self.is_led().await?;
        Ok(killed.elapsed())
    }

    /// Starts another replica for each that has ended by itself. How many there were.
    pub(super) async fn replace_ended(&self) -> anyhow::Result<u32> {
        let mut ended = 0;
        let mut running = self.running.lock().await;
        for replica in running.iter_mut() {
            if replica.has_ended()? {
                tokio::time::sleep(RESTART_PAUSE).await;
                *replica = self.next().await?;
                ended += 1;
            }
        }
        Ok(ended)
    }

    /// Waits until one leads.
    async fn is_led(&self) -> anyhow::Result<()> {
        until("a replica leads", PATIENCE, async || {
            let leader = leader(&self.running.lock().await).await?;
            Ok(leader.map(drop).ok_or_else(|| "no replica leads".to_owned()))
        })
        .await
    }
}

/// Which replica leads.
async fn leader(replicas: &[Running]) -> anyhow::Result<Option<usize>> {
    for (place, replica) in replicas.iter().enumerate() {
        if replica.leads().await? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
