//! A flood from its beginning to its end.

use std::{sync::Arc, time::Duration};

use kube::Client;
use serde_json::json;
use tokio::task::JoinSet;
use windlass_object::names;
use windlass_scenarios::{
    steps::{serving_certificates, succeed},
    test_cluster::TestCluster,
};

use super::{
    arguments::FloodKind,
    black_hole::BlackHole,
    bodies,
    calls::SharedCalls,
    guard::GuardPort,
    idle_connections,
    kinds::{self, FOREIGN, HOLES, NAMESPACE, foreign, hole, services_path},
    object_flood::ObjectFlood,
};
use crate::objects::certificate;

/// A flood, ready to begin.
pub(super) struct Flood {
    source: FloodSource,
    /// Where its EndpointSlices lead.
    _hole: Option<BlackHole>,
}

enum FloodSource {
    Objects(Arc<ObjectFlood>),
    Bodies(Arc<GuardPort>),
    Idle(Arc<GuardPort>),
}

impl Flood {
    /// Creates what the flood is about, but nothing of it.
    pub(super) async fn prepare(
        kind: FloodKind,
        cluster: &TestCluster,
        guard: GuardPort,
    ) -> anyhow::Result<Self> {
        let client = &cluster.client;
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
        let mut opened = None;
        let source = match kind {
            FloodKind::Secrets => FloodSource::Objects(Arc::new(kinds::secrets())),
            FloodKind::Services => FloodSource::Objects(Arc::new(kinds::services())),
            FloodKind::EndpointSlices => {
                create_holes(client).await?;
                let hole = opened.insert(BlackHole::open().await?);
                let slices = kinds::endpoint_slices(cluster.backing.address(), hole.port());
                FloodSource::Objects(Arc::new(slices))
            }
            FloodKind::Annotations => {
                create_foreign_secrets(client).await?;
                FloodSource::Objects(Arc::new(kinds::annotated_services()))
            }
            FloodKind::ConfigMaps => FloodSource::Objects(Arc::new(kinds::config_maps())),
            FloodKind::GuardBodies => FloodSource::Bodies(Arc::new(guard)),
            FloodKind::GuardIdle => FloodSource::Idle(Arc::new(guard)),
        };
        Ok(Self {
            source,
            _hole: opened,
        })
    }

    /// Begins; it ends when what comes back is dropped.
    pub(super) fn begin(&self, client: &Client, duration: Duration, calls: &SharedCalls) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        match &self.source {
            FloodSource::Objects(objects) => {
                tasks.spawn(objects.clone().write(client.clone(), duration, calls.clone()));
            }
            FloodSource::Bodies(guard) => bodies::send(guard, calls, &mut tasks),
            FloodSource::Idle(guard) => idle_connections::open(guard, calls, &mut tasks),
        }
        tasks
    }
}

/// Services that lead nowhere: a quarter has a ServingCertificate, a quarter asks for one.
async fn create_holes(client: &Client) -> anyhow::Result<()> {
    for number in 0..HOLES {
        let name = hole(number);
        let mut metadata = json!({"name": name});
        match number % 4 {
            0 => {
                let (path, certificate) = (serving_certificates(NAMESPACE), certificate(&name));
                succeed(client, "POST", &path, Some(&certificate)).await?;
            }
            1 => metadata["annotations"][names::SERVING_CERT_SECRET] = format!("{name}-cert").into(),
            _ => {}
        }
        let service = kinds::service(&metadata);
        succeed(client, "POST", &services_path(), Some(&service)).await?;
    }
    Ok(())
}

async fn create_foreign_secrets(client: &Client) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    for number in 0..FOREIGN {
        let secret = json!({"metadata": {"name": foreign(number)}, "stringData": {"password": "example"}});
        succeed(client, "POST", &path, Some(&secret)).await?;
    }
    Ok(())
}
