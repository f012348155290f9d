//! One container of a pod: started, probed, restarted, stopped.

mod launch;
mod state;

use std::{collections::BTreeMap, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use kube::ResourceExt;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};

use self::launch::Prepared;
use crate::{
    backoff::BackOff,
    context::Context,
    probe::{
        Prober,
        action::{Action, Target},
    },
    process::{Exit, Process},
    volume::Volumes,
};

pub(crate) use state::{Phase, Role, State, Terminated};

/// What a process gets to end by itself even where `preStop` has used up the grace period: kubelet's figure.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// A container to run.
pub(crate) struct Task {
    pub(crate) context: Arc<Context>,
    pub(crate) pod: watch::Receiver<Option<Arc<Pod>>>,
    pub(crate) container: Container,
    pub(crate) role: Role,
    pub(crate) address: Ipv4Addr,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
}

/// A container is in a new state.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) container: String,
    pub(crate) state: State,
}

/// A running container. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Handle {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

/// Resolves when the container is to stop, with the end of its grace period.
type Stop = watch::Receiver<Option<Instant>>;

/// How a run of a container ended.
struct Run {
    exit: Exit,
    reason: Option<&'static str>,
    stopped: bool,
}

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
        let mut state = State::default();
        let mut back_off = BackOff::default();
        loop {
            let Some(prepared) = self.prepare(&mut state, &mut stop).await else {
                return self.give_up(state);
            };
            let (began, started_at) = (Instant::now(), Timestamp::now());
            let run = match self.start_process(&prepared).await {
                Ok(Some(process)) => {
                    state.phase = Phase::Running { started_at };
                    self.supervise(process, &prepared, &mut state, &mut stop).await
                }
                // Nothing stands in for a program that is to end: it has.
                Ok(None) => Run {
                    exit: Exit { code: 0 },
                    reason: None,
                    stopped: false,
                },
                Err(error) => {
                    tracing::warn!(container = self.container.name, %error, "Cannot start a container");
                    Run {
                        exit: Exit { code: 128 },
                        reason: Some("StartError"),
                        stopped: false,
                    }
                }
            };
            let ended = Terminated {
                exit_code: run.exit.code,
                reason: run.reason,
                started_at,
                finished_at: Timestamp::now(),
            };
            tracing::debug!(
                container = self.container.name,
                code = run.exit.code,
                "A container ended"
            );
            (state.started, state.ready) = (false, false);
            state.phase = Phase::Terminated(ended.clone());
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
                state.phase = Phase::Waiting {
                    reason: "CrashLoopBackOff",
                    message,
                };
                self.report(&state);
            }
            tokio::select! {
                () = sleep(wait) => {}
                _ = stopped(&mut stop) => return self.give_up(state),
            }
            state.restarts += 1;
        }
    }

    /// Ends the container between two runs, or before the first.
    fn give_up(&self, mut state: State) {
        if let Some(ended) = state.last.take() {
            state.phase = Phase::Terminated(ended);
        }
        state.finished = true;
        self.report(&state);
    }

    /// What the container needs to start, waited for; `None` when it is to stop before.
    async fn prepare(&self, state: &mut State, stop: &mut Stop) -> Option<Prepared> {
        loop {
            let mut changes = self.context.objects.changes();
            let message = match self.prepared() {
                Ok(prepared) => return Some(prepared),
                Err(error) => error.to_string(),
            };
            state.phase = Phase::Waiting {
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

    /// Watches over a running process until it ends, by itself or because it must.
    async fn supervise(
        &self,
        mut process: Process,
        prepared: &Prepared,
        state: &mut State,
        stop: &mut Stop,
    ) -> Run {
        let target = self.target(prepared);
        let options = &self.context.options;
        let lifecycle = self.container.lifecycle.as_ref();
        state.started = self.container.startup_probe.is_none();
        state.ready = state.started && self.container.readiness_probe.is_none();
        self.report(state);
        if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref()) {
            let pressed = tokio::select! {
                done = self.hook(hook, &target) => done,
                exit = process.wait() => return Run { exit, reason: None, stopped: false },
                deadline = stopped(stop) => return self.end(process, &target, deadline, stop).await,
            };
            if let Err(error) = pressed {
                tracing::info!(container = self.container.name, error, "postStart failed");
                let exit = process.terminate(Instant::now() + self.grace()).await;
                return Run {
                    exit,
                    reason: Some("PostStartHookError"),
                    stopped: false,
                };
            }
        }
        let began = Instant::now();
        let prober = |probe: &Option<_>, passed| {
            probe
                .as_ref()
                .map(|probe| Prober::new(probe, passed, began, options))
        };
        let mut startup = prober(&self.container.startup_probe, false);
        let mut readiness = prober(&self.container.readiness_probe, false).map(Prober::eagerly);
        let mut liveness = prober(&self.container.liveness_probe, true);
        loop {
            let starting = !state.started;
            tokio::select! {
                exit = process.wait() => return Run { exit, reason: None, stopped: false },
                deadline = stopped(stop) => return self.end(process, &target, deadline, stop).await,
                (passed, _) = changed(&mut startup, &target), if starting => {
                    state.started = passed;
                    state.ready = passed && readiness.is_none();
                    self.report(state);
                }
                (passed, why) = changed(&mut readiness, &target), if !starting => {
                    tracing::debug!(container = self.container.name, passed, why, "Readiness changed");
                    state.ready = passed;
                    self.report(state);
                }
                (_, why) = changed(&mut liveness, &target), if !starting => {
                    tracing::info!(container = self.container.name, why, "Restarting a container that is not alive");
                    state.ready = false;
                    self.report(state);
                    let exit = process.terminate(Instant::now() + self.grace()).await;
                    return Run { exit, reason: None, stopped: false };
                }
            }
        }
    }

    /// `preStop`, SIGTERM, and SIGKILL at the deadline, which may still come nearer.
    async fn end(
        &self,
        mut process: Process,
        target: &Target<'_>,
        deadline: Instant,
        stop: &mut Stop,
    ) -> Run {
        let orderly = async {
            let hook = self
                .container
                .lifecycle
                .as_ref()
                .and_then(|lifecycle| lifecycle.pre_stop.as_ref());
            if let Some(hook) = hook {
                tokio::select! {
                    done = timeout_at(deadline, self.hook(hook, target)) => if let Ok(Err(error)) = done {
                        tracing::info!(container = self.container.name, error, "preStop failed");
                    },
                    exit = process.wait() => return exit,
                }
            }
            process
                .terminate(deadline.max(Instant::now() + LEAST_GRACE))
                .await
        };
        let exit = tokio::select! {
            exit = orderly => exit,
            () = hurried(stop, deadline) => process.terminate(Instant::now()).await,
        };
        Run {
            exit,
            reason: None,
            stopped: true,
        }
    }

    async fn hook(&self, hook: &LifecycleHandler, target: &Target<'_>) -> Result<(), String> {
        if let Some(pause) = &hook.sleep {
            let seconds = u64::try_from(pause.seconds).unwrap_or_default();
            sleep(self.context.options.scaled(Duration::from_secs(seconds))).await;
            return Ok(());
        }
        if let Some(get) = &hook.http_get {
            return Action::Get(get.clone()).ask(target).await;
        }
        match &hook.exec {
            Some(run) => Action::Run(run.clone()).ask(target).await,
            None => Ok(()),
        }
    }

    fn target<'a>(&'a self, prepared: &'a Prepared) -> Target<'a> {
        Target {
            container: &self.container,
            address: self.address,
            launcher: &self.context.launcher,
            variables: &prepared.variables,
            mounts: prepared.visible_mounts(),
            stood_in: prepared.stood_in(),
        }
    }

    fn pod(&self) -> Option<Arc<Pod>> {
        self.pod.borrow().clone()
    }

    /// The grace period of a restart.
    fn grace(&self) -> Duration {
        let pod = self.pod();
        let seconds = pod
            .and_then(|pod| pod.spec.as_ref()?.termination_grace_period_seconds)
            .unwrap_or(30);
        Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }

    fn report(&self, state: &State) {
        // The pod's task is gone: nobody wants to know.
        drop(self.reports.send(Report {
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

/// Waits until the deadline was brought forward and has passed.
async fn hurried(stop: &mut Stop, deadline: Instant) {
    match stop
        .wait_for(|new| new.is_some_and(|new| new < deadline))
        .await
        .map(|new| *new)
    {
        Ok(Some(new)) => tokio::time::sleep_until(new).await,
        _ => std::future::pending().await,
    }
}

/// The next change of a probe; for ever where there is none.
async fn changed(prober: &mut Option<Prober>, target: &Target<'_>) -> (bool, String) {
    match prober {
        Some(prober) => prober.changed(target).await,
        None => std::future::pending().await,
    }
}

/// Where a program finds its mounts, as the variable `WINDLASS_MOUNTS` says it.
fn mounts_variable(mounts: &BTreeMap<String, PathBuf>) -> String {
    serde_json::json!(mounts).to_string()
}
