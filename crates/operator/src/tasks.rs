//! The operator's tasks. One that ends, for whatever reason, ends the process: half an operator looks like a whole one.

use std::{error::Error, time::Duration};

use thiserror::Error;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Tasks, each with its name.
pub(crate) struct Tasks {
    /// Nobody else may lead while one of these goes on.
    leading: JoinSet<Ended>,
    /// Somebody else may.
    others: JoinSet<Ended>,
}

/// The steps in which a process ends.
pub(crate) struct Ending {
    /// Everybody finishes what they are doing.
    pub stop: CancellationToken,
    /// Nothing is written as the leader any more.
    pub worked: CancellationToken,
    /// Nobody is answered any more, and nothing needs to be known for it.
    pub drained: CancellationToken,
}

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
pub(crate) const GRACE: Duration = Duration::from_secs(20);

// === impl Tasks ===

impl Tasks {
    pub(crate) fn new() -> Self {
        Self {
            leading: JoinSet::new(),
            others: JoinSet::new(),
        }
    }

    /// Starts a task that writes as the leader.
    pub(crate) fn start<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        self.leading
            .spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Starts a task that does the same whether this process leads or not.
    pub(crate) fn start_unfenced<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        self.others
            .spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Waits until the first task ends, or for `stop`; then the others get some time to finish. `worked` is cancelled as soon as
    /// nothing is written as the leader any more.
    ///
    /// # Errors
    ///
    /// When a task has ended before `stop`.
    pub(crate) async fn supervise(
        mut self,
        stop: CancellationToken,
        worked: CancellationToken,
    ) -> Result<(), TaskError> {
        let ended = tokio::select! {
            () = stop.cancelled() => None,
            Some(ended) = self.leading.join_next() => Some(ended),
            Some(ended) = self.others.join_next() => Some(ended),
            else => None,
        };
        let is_shutdown = ended.is_none() || stop.is_cancelled();
        stop.cancel();
        let finished = async {
            while self.leading.join_next().await.is_some() {}
            worked.cancel();
            while self.others.join_next().await.is_some() {}
        };
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

// === impl Ending ===

impl Ending {
    /// That of a process that is told by `stop`, and may have to answer others yet.
    pub(crate) fn of(stop: CancellationToken, answers: bool) -> Self {
        Self {
            worked: CancellationToken::new(),
            drained: if answers {
                CancellationToken::new()
            } else {
                stop.clone()
            },
            stop,
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
        let error = tasks.supervise(stop, CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "task ends ended unexpectedly");
    }

    #[tokio::test]
    async fn a_shutdown_is_no_error() {
        let stop = CancellationToken::new();
        let tasks = tasks(&stop);
        stop.cancel();
        tasks.supervise(stop, CancellationToken::new()).await.unwrap();
    }

    #[tokio::test]
    async fn another_may_lead_while_what_is_not_fenced_goes_on() {
        let stop = CancellationToken::new();
        let worked = CancellationToken::new();
        let mut tasks = tasks(&stop);
        let others = worked.clone();
        tasks.start_unfenced("serves until another leads", async move {
            others.cancelled().await;
            Ok::<_, Infallible>(())
        });
        stop.cancel();
        tasks.supervise(stop, worked.clone()).await.unwrap();
        assert!(worked.is_cancelled());
    }
}
