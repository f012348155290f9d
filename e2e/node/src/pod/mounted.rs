//! What a pod mounts: written before it starts, and kept as the API has it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    changes::{Changes, changed},
    token::PodTokens,
};
use crate::{
    context::NodeContext,
    fields::PodFields,
    volume::{
        Volumes, WriteError,
        content::{Ingredients, Missing, VolumeContents},
    },
};

/// How soon a token that could not be renewed is asked for again.
const RETRY: Duration = Duration::from_secs(10);

/// Why a pod's volumes are not there yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum MountError {
    /// Something that it mounts is not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A token cannot be had.
    #[error("cannot request a token: {0}")]
    Token(#[from] kube::Error),
    /// This machine does not play along.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The pod itself.
    #[error("the pod is gone")]
    Gone,
}

/// What a pod mounts.
pub(super) struct Mounted {
    context: Arc<NodeContext>,
    changes: Changes,
    volumes: Arc<Volumes>,
    tokens: PodTokens,
}

impl Mounted {
    /// What a pod mounts, not written yet.
    pub(super) fn new(context: Arc<NodeContext>, changes: Changes, volumes: Arc<Volumes>) -> Self {
        Self {
            context,
            changes,
            volumes,
            tokens: PodTokens::default(),
        }
    }

    /// Writes all of it.
    ///
    /// # Errors
    ///
    /// When something is not there, or cannot be written.
    pub(super) async fn write(&mut self) -> Result<(), MountError> {
        let pod = self.pod()?;
        let spec = pod.spec.as_ref().ok_or(MountError::Gone)?;
        self.volumes.prepare(spec)?;
        // What is cheap to find missing comes first: a token is asked for when it can be used.
        match self.contents(&pod) {
            Ok(_) | Err(MountError::Missing(Missing::Token)) => {}
            Err(error) => return Err(error),
        }
        self.tokens.renew(&self.context.client, &pod).await?;
        let contents = self.contents(&pod)?;
        Ok(self.volumes.write(contents)?)
    }

    /// Waits until what was missing may be there: something has changed, or some time has passed.
    pub(super) async fn chance(&mut self, mut objects: watch::Receiver<()>, time: Duration) {
        tokio::select! {
            _ = objects.changed() => {}
            () = changed(&mut self.changes) => {}
            () = sleep(time) => {}
        }
    }

    /// Writes what has changed, as late as a kubelet may. What is deleted stays as it was.
    pub(super) async fn keep_fresh(&mut self) -> Infallible {
        let mut objects = self.context.objects.changes();
        loop {
            if self.has_changed() {
                sleep(self.delay()).await;
                if let Err(error) = self.write().await {
                    tracing::debug!(%error, "Cannot refresh the volumes of a pod");
                    // A token that is due would be asked for again at once.
                    self.tokens.put_off(RETRY);
                }
            }
            let due = self.tokens.due();
            tokio::select! {
                _ = objects.changed() => {}
                () = changed(&mut self.changes) => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    fn has_changed(&self) -> bool {
        let contents = self.pod().and_then(|pod| self.contents(&pod));
        contents.is_ok_and(|contents| self.volumes.differs(&contents)) || self.tokens.are_due()
    }

    fn contents(&self, pod: &Pod) -> Result<VolumeContents, MountError> {
        let spec = pod.spec.as_ref().ok_or(MountError::Gone)?;
        let (namespace, options) = (pod.namespace().unwrap_or_default(), &self.context.options);
        let ingredients = Ingredients {
            // The downward API has no addresses for volumes, only for variables.
            fields: PodFields {
                pod,
                address: None,
                host: self.context.host,
                node: &options.name,
            },
            namespace: &namespace,
            sources: &self.context.objects,
            tokens: self.tokens.issued(),
        };
        Ok(ingredients.volumes(spec)?)
    }

    fn pod(&self) -> Result<Arc<Pod>, MountError> {
        self.changes.borrow().clone().ok_or(MountError::Gone)
    }

    fn delay(&self) -> Duration {
        let range = &self.context.options.refresh_delay;
        if range.is_empty() {
            *range.start()
        } else {
            rand::random_range(range.clone())
        }
    }
}
