//! The runs of a container, one after the other, until it is finished or stopped.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{
    launch::Prepared,
    state::{ContainerPhase, ContainerRecord, Terminated},
    supervision::Run,
    task::{Stop, Task, stopped},
};
use crate::{backoff::BackOff, process::Exit};

/// The most bytes that are shown of a log: kubelet's `MaxContainerTerminationMessageLogLength`.
const LAST_WORDS: usize = 2048;

/// A running container. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Handle {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

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
            let began = Instant::now();
            let (ended, is_over) = self.run_once(&prepared, &mut state, &mut stop).await;
            (state.started, state.ready) = (false, false);
            state.phase = ContainerPhase::Terminated(ended.clone());
            state.finished = is_over || !self.role.restarts(ended.exit_code);
            self.report(&state);
            if state.finished {
                return;
            }
            state.last = Some(ended);
            let wait = self.context.options.scaled(back_off.after(began.elapsed()));
            if !wait.is_zero() {
                self.report_back_off(&mut state, wait);
            }
            tokio::select! {
                biased;
                _ = stopped(&mut stop) => return self.give_up(state),
                () = sleep(wait) => {}
            }
            state.restarts += 1;
        }
    }

    /// Runs the container until it ends: how, and whether it was to end for good.
    async fn run_once(
        &self,
        prepared: &Prepared,
        state: &mut ContainerRecord,
        stop: &mut Stop,
    ) -> (Terminated, bool) {
        let started_at = Timestamp::now();
        let log_start = std::fs::metadata(&prepared.log).map_or(0, |log| log.len());
        let run = match self.start_process(prepared).await {
            Ok(Some(process)) => {
                state.phase = ContainerPhase::Running { started_at };
                self.supervise(process, prepared, state, stop).await
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
        let code = run.exit.code;
        tracing::debug!(container = self.container.name, code, "A container ended");
        let ended = Terminated {
            exit_code: code,
            reason: run.reason,
            message: self.last_words(prepared, log_start, code),
            started_at,
            finished_at: Timestamp::now(),
        };
        (ended, run.stopped)
    }

    /// Reports that the container waits before it is started again.
    fn report_back_off(&self, state: &mut ContainerRecord, wait: Duration) {
        let message = format!(
            "back-off {wait:?} restarting failed container={} pod={}",
            self.container.name,
            self.pod().map(|pod| pod.name_any()).unwrap_or_default()
        );
        state.phase = ContainerPhase::Waiting {
            reason: "CrashLoopBackOff",
            message,
        };
        self.report(state);
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
}
