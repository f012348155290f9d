//! The operator's tasks. One that ends, for whatever reason, ends the process: half an operator looks like a whole one.

use std::{error::Error, time::Duration};

use thiserror::Error;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Tasks, each with its name.
pub(crate) struct Tasks(JoinSet<Ended>);

/// A task's name and how it ended.
type Ended = (&'static str, Result<(), Box<dyn Error + Send + Sync>>);

/// How a task ended that should not have.
#[derive(Debug, Error)]
pub enum TaskError {
    /// By an error.
    #[error("task {name} failed")]
    Failed {
        /// The task.
        name: &'static str,
        /// The error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Without an error.
    #[error("task {name} ended unexpectedly")]
    Ended {
        /// The task.
        name: &'static str,
    },
    /// By a panic.
    #[error("a task panicked")]
    Panicked(#[source] JoinError),
}

/// How long the tasks have at shutdown to finish what they are doing.
const GRACE: Duration = Duration::from_secs(20);

// === impl Tasks ===

impl Tasks {
    pub(crate) fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Starts a task.
    pub(crate) fn start<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        self.0
            .spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Waits until the first task ends, or for `stop`; then the others get some time to finish.
    ///
    /// # Errors
    ///
    /// When a task has ended before `stop`.
    pub(crate) async fn supervise(mut self, stop: CancellationToken) -> Result<(), TaskError> {
        let ended = tokio::select! {
            () = stop.cancelled() => None,
            ended = self.0.join_next() => ended,
        };
        let is_shutdown = ended.is_none() || stop.is_cancelled();
        stop.cancel();
        let finished = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, finished).await.is_err() {
            error!("Some tasks did not finish in time");
        }
        match ended {
            _ if is_shutdown => Ok(()),
            Some(Ok((name, Err(source)))) => Err(TaskError::Failed { name, source }),
            Some(Ok((name, Ok(())))) => Err(TaskError::Ended { name }),
            Some(Err(panicked)) => Err(TaskError::Panicked(panicked)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// One that waits for `stop`.
    fn tasks(stop: &CancellationToken) -> Tasks {
        let mut tasks = Tasks::new();
        let stop = stop.clone();
        tasks.start("waits", async move {
            stop.cancelled().await;
            Ok::<_, Infallible>(())
        });
        tasks
    }

    #[tokio::test]
    async fn a_task_that_ends_by_itself_ends_everything() {
        let stop = CancellationToken::new();
        let mut tasks = tasks(&stop);
        tasks.start("ends", async { Ok::<_, Infallible>(()) });
        let error = tasks.supervise(stop).await.unwrap_err();
        assert_eq!(error.to_string(), "task ends ended unexpectedly");
    }

    #[tokio::test]
    async fn a_shutdown_is_no_error() {
        let stop = CancellationToken::new();
        let tasks = tasks(&stop);
        stop.cancel();
        tasks.supervise(stop).await.unwrap();
    }
}
