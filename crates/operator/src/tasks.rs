//! The tasks of the operator. If one ends, the process ends: a partly running operator would look healthy.

use std::{error::Error, time::Duration};

use thiserror::Error;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Named tasks, of which any that ends unexpectedly ends the process.
pub(crate) struct Tasks {
    /// Tasks that must end before another process may lead.
    leading: JoinSet<TaskResult>,
    /// Tasks that may outlast the leadership.
    others: JoinSet<TaskResult>,
}

pub(crate) struct ShutdownSteps {
    /// Tasks finish their current work.
    pub stop: CancellationToken,
    /// No task writes as the leader any longer.
    pub worked: CancellationToken,
    /// All requests were answered; the watches may stop.
    pub drained: CancellationToken,
}

/// The name of a task and its result.
type TaskResult = (&'static str, Result<(), Box<dyn Error + Send + Sync>>);

/// How a task ended unexpectedly.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum TaskError {
    /// A task returned an error.
    #[error("task {name} failed")]
    Failed {
        name: &'static str,
        source: Box<dyn Error + Send + Sync>,
    },
    /// A task ended before the shutdown, without an error.
    #[error("task {name} ended unexpectedly")]
    Ended { name: &'static str },
    /// A task panicked.
    #[error("a task panicked")]
    Panicked(#[source] JoinError),
}

/// How long tasks have at shutdown to finish.
pub(crate) const GRACE: Duration = Duration::from_secs(20);

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

    /// Starts a task that runs whether or not this process leads.
    pub(crate) fn start_unfenced<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        self.others
            .spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Waits for the first task to end or for `stop`, and then for the others until the grace period ends.
    /// Cancels `worked` once all tasks that write as the leader have ended.
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

impl ShutdownSteps {
    /// Creates the steps of a process that `stop` shuts down; `answers` tells whether it still has requests
    /// to answer then.
    pub(crate) fn new(stop: CancellationToken, answers: bool) -> Self {
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

    /// Tasks with one that waits for `stop`.
    fn tasks(stop: &CancellationToken) -> Tasks {
        let mut tasks = Tasks::new();
        let stop = stop.clone();
        tasks.start("waiter", async move {
            stop.cancelled().await;
            Ok::<_, Infallible>(())
        });
        tasks
    }

    #[tokio::test]
    async fn a_task_that_ends_unexpectedly_ends_the_process() {
        let stop = CancellationToken::new();
        let mut tasks = tasks(&stop);
        tasks.start("worker", async { Ok::<_, Infallible>(()) });
        let error = tasks.supervise(stop, CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "task worker ended unexpectedly");
    }

    #[tokio::test]
    async fn a_shutdown_is_not_an_error() {
        let stop = CancellationToken::new();
        let tasks = tasks(&stop);
        stop.cancel();
        tasks.supervise(stop, CancellationToken::new()).await.unwrap();
    }

    #[tokio::test]
    async fn unfenced_tasks_may_outlast_the_leadership() {
        let stop = CancellationToken::new();
        let worked = CancellationToken::new();
        let mut tasks = tasks(&stop);
        let others = worked.clone();
        tasks.start_unfenced("serves until another process leads", async move {
            others.cancelled().await;
            Ok::<_, Infallible>(())
        });
        stop.cancel();
        tasks.supervise(stop, worked.clone()).await.unwrap();
        assert!(worked.is_cancelled());
    }
}
