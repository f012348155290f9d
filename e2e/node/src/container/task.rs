//! A container that is to run, and what its pod hears of it.

use std::{net::Ipv4Addr, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::state::{ContainerRecord, Role};
use crate::{context::NodeContext, volume::Volumes};

/// A container to run.
pub(crate) struct Task {
    pub(crate) context: Arc<NodeContext>,
    pub(crate) pod: watch::Receiver<Option<Arc<Pod>>>,
    pub(crate) container: Container,
    pub(crate) role: Role,
    pub(crate) address: Ipv4Addr,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) reports: mpsc::UnboundedSender<ContainerReport>,
}

/// A container is in a new state.
#[derive(Debug)]
pub(crate) struct ContainerReport {
    pub(crate) container: String,
    pub(crate) state: ContainerRecord,
}

/// Resolves when the container is to stop, with the end of its grace period.
pub(super) type Stop = watch::Receiver<Option<Instant>>;

impl Task {
    /// The pod as it is now; `None` when it is gone.
    pub(super) fn pod(&self) -> Option<Arc<Pod>> {
        self.pod.borrow().clone()
    }

    /// Tells the pod's task the state of the container.
    pub(super) fn report(&self, state: &ContainerRecord) {
        // The pod's task is gone: nobody wants to know.
        drop(self.reports.send(ContainerReport {
            container: self.container.name.clone(),
            state: state.clone(),
        }));
    }
}

/// Waits for the order to stop; for ever where the order can no longer come, since the task is aborted then.
pub(super) async fn stopped(stop: &mut Stop) -> Instant {
    match stop.wait_for(Option::is_some).await.map(|deadline| *deadline) {
        Ok(deadline) => deadline.unwrap_or_else(Instant::now),
        Err(_) => std::future::pending().await,
    }
}
