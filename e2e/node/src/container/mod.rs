//! One container of a pod: started, probed, restarted, stopped.

mod launch;
mod state;
mod supervision;

use std::{collections::BTreeMap, net::Ipv4Addr, path::PathBuf, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};

use self::{launch::Prepared, supervision::Run};
use crate::{backoff::BackOff, context::NodeContext, process::Exit, volume::Volumes};

pub(crate) use state::{ContainerPhase, ContainerRecord, Role, Terminated};

/// The most bytes that are shown of a log: kubelet's `MaxContainerTerminationMessageLogLength`.
const LAST_WORDS: usize = 2048;

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

/// A running container. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Handle {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

/// Resolves when the container is to stop, with the end of its grace period.
type Stop = watch::Receiver<Option<Instant>>;

// === impl Handle ===

impl Handle {
    /// Lets the container end until a deadline; an earlier one may follow.
    pub(crate) fn stop(&self, deadline: Instant) {
        self.stop.send_replace(Some(deadline));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Task ===

impl Task {
    /// Starts the container.
    pub(crate) fn start(self) -> Handle {
        let (stop, stopped) = watch::channel(None);
        let tasks = self.context.tasks.clone();
        Handle {
            stop,
            task: tasks.spawn(self.run(stopped)),
        }
    }

    async fn run(self, mut stop: Stop) {
        let mut state = ContainerRecord::default();
        let mut back_off = BackOff::default();
        loop {
            let Some(prepared) = self.prepare(&mut state, &mut stop).await else {
                return self.give_up(state);
            };
            let (began, started_at) = (Instant::now(), Timestamp::now());
            let log_start = std::fs::metadata(&prepared.log).map_or(0, |log| log.len());
            let run = match self.start_process(&prepared).await {
                Ok(Some(process)) => {
                    state.phase = ContainerPhase::Running { started_at };
                    self.supervise(process, &prepared, &mut state, &mut stop).await
                }
                // Nothing stands in for a program that is to end: it has.
                Ok(None) => Run::ended(Exit { code: 0 }),
                Err(error) => {
                    tracing::warn!(container = self.container.name, %error, "Cannot start a container");
                    Run {
                        reason: Some("StartError"),
                        ..Run::ended(Exit { code: 128 })
                    }
                }
            };
            let ended = Terminated {
                exit_code: run.exit.code,
                reason: run.reason,
                message: self.last_words(&prepared, log_start, run.exit.code),
                started_at,
                finished_at: Timestamp::now(),
            };
            tracing::debug!(
                container = self.container.name,
                code = run.exit.code,
                "A container ended"
            );
            (state.started, state.ready) = (false, false);
            state.phase = ContainerPhase::Terminated(ended.clone());
            let restart = !run.stopped && self.role.restarts(run.exit.code);
            state.finished = !restart;
            self.report(&state);
            if !restart {
                return;
            }
            state.last = Some(ended);
            let wait = self.context.options.scaled(back_off.after(began.elapsed()));
            if !wait.is_zero() {
                let message = format!(
                    "back-off {wait:?} restarting failed container={} pod={}",
                    self.container.name,
                    self.pod().map(|pod| pod.name_any()).unwrap_or_default()
                );
                state.phase = ContainerPhase::Waiting {
                    reason: "CrashLoopBackOff",
                    message,
                };
                self.report(&state);
            }
            tokio::select! {
                biased;
                _ = stopped(&mut stop) => return self.give_up(state),
                () = sleep(wait) => {}
            }
            state.restarts += 1;
        }
    }

    /// Ends the container between two runs, or before the first.
    fn give_up(&self, mut state: ContainerRecord) {
        if let Some(ended) = state.last.take() {
            state.phase = ContainerPhase::Terminated(ended);
        }
        state.finished = true;
        self.report(&state);
    }

    /// What the container needs to start, waited for; `None` when it is to stop before.
    async fn prepare(&self, state: &mut ContainerRecord, stop: &mut Stop) -> Option<Prepared> {
        loop {
            let mut changes = self.context.objects.changes();
            let message = match self.prepared() {
                Ok(prepared) => return Some(prepared),
                Err(error) => error.to_string(),
            };
            state.phase = ContainerPhase::Waiting {
                reason: "CreateContainerConfigError",
                message,
            };
            self.report(state);
            tokio::select! {
                _ = changes.changed() => {}
                _ = stopped(stop) => return None,
            }
        }
    }

    /// The end of the log of a container that failed, as kubelet shows it where no other message was written.
    fn last_words(&self, prepared: &Prepared, log_start: u64, code: i32) -> Option<String> {
        let policy = self.container.termination_message_policy.as_deref();
        if code == 0 || policy != Some("FallbackToLogsOnError") {
            return None;
        }
        let log = std::fs::read(&prepared.log).ok()?;
        let log = log.get(usize::try_from(log_start).ok()?..)?;
        let end = &log[log.len().saturating_sub(LAST_WORDS)..];
        Some(String::from_utf8_lossy(end).trim().to_owned()).filter(|words| !words.is_empty())
    }

    fn pod(&self) -> Option<Arc<Pod>> {
        self.pod.borrow().clone()
    }

    fn report(&self, state: &ContainerRecord) {
        // The pod's task is gone: nobody wants to know.
        drop(self.reports.send(ContainerReport {
            container: self.container.name.clone(),
            state: state.clone(),
        }));
    }
}

/// Waits for the order to stop; for ever where the order can no longer come, since the task is aborted then.
async fn stopped(stop: &mut Stop) -> Instant {
    match stop.wait_for(Option::is_some).await.map(|deadline| *deadline) {
        Ok(deadline) => deadline.unwrap_or_else(Instant::now),
        Err(_) => std::future::pending().await,
    }
}

/// Where a program finds its mounts, as the variable `WINDLASS_MOUNTS` says it.
fn mounts_variable(mounts: &BTreeMap<String, PathBuf>) -> String {
    serde_json::json!(mounts).to_string()
}
