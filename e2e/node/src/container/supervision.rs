//! A running process, until it ends: hooks, probes, the end in order.

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    launch::Prepared,
    state::ContainerRecord,
    task::{Stop, Task, stopped},
};
use crate::{
    probe::{
        ProbeWorker,
        action::{ProbeAction, ProbedContainer},
    },
    process::{Exit, Process},
};

/// What a process gets to end by itself even where `preStop` has used up the grace period: kubelet's figure.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// How a run of a container ended.
pub(super) struct Run {
    pub(super) exit: Exit,
    pub(super) reason: Option<&'static str>,
    /// It was to end for good.
    pub(super) stopped: bool,
}

impl Run {
    /// A run that ended, and may be followed by another.
    pub(super) fn ended(exit: Exit) -> Self {
        Self {
            exit,
            reason: None,
            stopped: false,
        }
    }

    fn stopped(exit: Exit) -> Self {
        Self {
            stopped: true,
            ..Self::ended(exit)
        }
    }
}

impl Task {
    /// Watches over a running process until it ends, by itself or because it must.
    pub(super) async fn supervise(
        &self,
        mut process: Process,
        prepared: &Prepared,
        state: &mut ContainerRecord,
        stop: &mut Stop,
    ) -> Run {
        let target = self.target(prepared);
        let lifecycle = self.container.lifecycle.as_ref();
        state.started = self.container.startup_probe.is_none();
        state.ready = state.started && self.container.readiness_probe.is_none();
        self.report(state);
        if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref()) {
            let done = tokio::select! {
                done = self.hook(hook, &target) => done,
                exit = process.wait() => return Run::ended(exit),
                deadline = stopped(stop) => return Run::stopped(self.end(process, &target, deadline, stop).await),
            };
            if let Err(error) = done {
                tracing::info!(container = self.container.name, error, "postStart failed");
                return Run {
                    reason: Some("PostStartHookError"),
                    ..self.replace(process, &target, state, stop).await
                };
            }
        }
        let began = Instant::now();
        let prober = |probe: &Option<_>, passed| {
            let new = |probe| ProbeWorker::new(probe, passed, began, &self.context.options);
            probe.as_ref().map(new)
        };
        let mut startup = prober(&self.container.startup_probe, None);
        let mut readiness = prober(&self.container.readiness_probe, Some(false)).map(ProbeWorker::eagerly);
        let mut liveness = prober(&self.container.liveness_probe, Some(true));
        loop {
            let starting = !state.started;
            tokio::select! {
                exit = process.wait() => return Run::ended(exit),
                deadline = stopped(stop) => return Run::stopped(self.end(process, &target, deadline, stop).await),
                (passed, why) = changed(&mut startup, &target), if starting => {
                    if !passed {
                        tracing::info!(container = self.container.name, why, "Restarting a container that does not start");
                        return self.replace(process, &target, state, stop).await;
                    }
                    state.started = true;
                    state.ready = readiness.is_none();
                    self.report(state);
                }
                (passed, why) = changed(&mut readiness, &target), if !starting => {
                    tracing::debug!(container = self.container.name, passed, why, "Readiness changed");
                    state.ready = passed;
                    self.report(state);
                }
                (_, why) = changed(&mut liveness, &target), if !starting => {
                    tracing::info!(container = self.container.name, why, "Restarting a container that is not alive");
                    return self.replace(process, &target, state, stop).await;
                }
            }
        }
    }

    /// Ends the process so that another can take its place.
    async fn replace(
        &self,
        process: Process,
        target: &ProbedContainer<'_>,
        state: &mut ContainerRecord,
        stop: &mut Stop,
    ) -> Run {
        state.ready = false;
        self.report(state);
        Run::ended(
            self.end(process, target, Instant::now() + self.grace(), stop)
                .await,
        )
    }

    /// `preStop`, SIGTERM, and SIGKILL at the deadline, which may still come nearer.
    async fn end(
        &self,
        mut process: Process,
        target: &ProbedContainer<'_>,
        deadline: Instant,
        stop: &mut Stop,
    ) -> Exit {
        let lifecycle = self.container.lifecycle.as_ref();
        let orderly = async {
            if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
                tokio::select! {
                    done = timeout_at(deadline, self.hook(hook, target)) => if let Ok(Err(error)) = done {
                        tracing::info!(container = self.container.name, error, "preStop failed");
                    },
                    exit = process.wait() => return exit,
                }
            }
            let end = deadline.max(Instant::now() + LEAST_GRACE);
            process.terminate(end).await
        };
        tokio::select! {
            exit = orderly => exit,
            () = hurried(stop, deadline) => process.terminate(Instant::now()).await,
        }
    }

    async fn hook(&self, hook: &LifecycleHandler, target: &ProbedContainer<'_>) -> Result<(), String> {
        if let Some(pause) = &hook.sleep {
            let seconds = u64::try_from(pause.seconds).unwrap_or_default();
            sleep(self.context.options.scaled(Duration::from_secs(seconds))).await;
            return Ok(());
        }
        if let Some(get) = &hook.http_get {
            return ProbeAction::Get(get.clone()).ask(target).await;
        }
        match &hook.exec {
            Some(run) => ProbeAction::Run(run.clone()).ask(target).await,
            None => Ok(()),
        }
    }

    fn target<'a>(&'a self, prepared: &'a Prepared) -> ProbedContainer<'a> {
        ProbedContainer {
            container: &self.container,
            address: self.address,
            launcher: &self.context.launcher,
            variables: &prepared.variables,
            mounts: prepared.visible_mounts(),
            stood_in: prepared.stood_in(),
        }
    }

    /// The grace period of a restart.
    fn grace(&self) -> Duration {
        let pod = self.pod();
        let seconds = pod.and_then(|pod| pod.spec.as_ref()?.termination_grace_period_seconds);
        Duration::from_secs(u64::try_from(seconds.unwrap_or(30)).unwrap_or_default())
    }
}

/// Waits until the deadline was brought forward and has passed.
async fn hurried(stop: &mut Stop, deadline: Instant) {
    let nearer = |new: &Option<Instant>| new.is_some_and(|new| new < deadline);
    match stop.wait_for(nearer).await.map(|new| *new) {
        Ok(Some(new)) => tokio::time::sleep_until(new).await,
        _ => std::future::pending().await,
    }
}

/// The next change of a probe; for ever where there is none.
async fn changed(prober: &mut Option<ProbeWorker>, target: &ProbedContainer<'_>) -> (bool, String) {
    match prober {
        Some(prober) => prober.changed(target).await,
        None => std::future::pending().await,
    }
}
