//! The status of a pod.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

use super::member::Member;
use crate::container::{ContainerPhase, ContainerRecord, Role, Terminated};

/// What the status of a pod shows.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) pod: &'a Pod,
    pub(super) host: Ipv4Addr,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) members: &'a [Member],
    /// Why no container starts yet.
    pub(super) message: &'a str,
    /// The pod is to end: nothing of it is ready, so that it gets no more requests.
    pub(super) ending: bool,
}

/// The status of a pod; what has not changed since `previous` keeps its time.
pub(super) fn of(view: &View<'_>, previous: &PodStatus, now: Timestamp) -> PodStatus {
    let statuses = |init: bool| -> Vec<_> {
        let members = view.members.iter().filter(|member| member.init == init);
        members.map(|member| container_status(member, view)).collect()
    };
    let init = statuses(true);
    PodStatus {
        phase: Some(phase(view.members).to_owned()),
        conditions: Some(conditions(view, previous, now)),
        container_statuses: Some(statuses(false)),
        init_container_statuses: (!init.is_empty()).then_some(init),
        host_ip: Some(view.host.to_string()),
        host_ips: Some(vec![HostIP {
            ip: view.host.to_string(),
        }]),
        pod_ip: view.address.map(|address| address.to_string()),
        pod_ips: view.address.map(|address| {
            vec![PodIP {
                ip: address.to_string(),
            }]
        }),
        start_time: previous.start_time.clone(),
        ..PodStatus::default()
    }
}

/// As kubelet's `getPhase` has it.
fn phase(members: &[Member]) -> &'static str {
    let mut main = members.iter().filter(|member| !member.init);
    if members.iter().any(Member::fails_the_pod) {
        return "Failed";
    }
    if main.clone().all(Member::is_finished) {
        let succeeded = |member: &Member| {
            let outcome = member.state.as_ref().and_then(ContainerRecord::outcome);
            outcome.is_some_and(|outcome| outcome.exit_code == 0)
        };
        return if main.all(succeeded) {
            "Succeeded"
        } else {
            "Failed"
        };
    }
    let has_run = |member: &Member| {
        let state = member.state.as_ref();
        state.is_some_and(|state| {
            state.last.is_some() || !matches!(state.phase, ContainerPhase::Waiting { .. })
        })
    };
    if main.all(has_run) { "Running" } else { "Pending" }
}

fn conditions(view: &View<'_>, previous: &PodStatus, now: Timestamp) -> Vec<PodCondition> {
    let initialized = view
        .members
        .iter()
        .filter(|member| member.init)
        .all(Member::makes_way);
    let unready: Vec<_> = view
        .members
        .iter()
        .filter(|member| counts(member) && !is_ready(member, view))
        .map(|member| member.container.name.as_str())
        .collect();
    let closed: Vec<_> = closed_gates(view.pod);
    let containers = match unready.as_slice() {
        [] => None,
        unready => Some((
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        )),
    };
    let ready = match closed.as_slice() {
        [] => containers.clone(),
        gates if containers.is_none() => Some((
            "ReadinessGatesNotReady",
            format!("the readiness gates {gates:?} are not \"True\""),
        )),
        _ => containers.clone(),
    };
    let uninitialized = (!initialized).then(|| {
        (
            "ContainersNotInitialized",
            "init containers have not completed".to_owned(),
        )
    });
    let without_address = view.address.is_none().then(|| ("", String::new()));
    [
        ("PodScheduled", None),
        ("PodReadyToStartContainers", without_address),
        ("Initialized", uninitialized),
        ("ContainersReady", containers),
        ("Ready", ready),
    ]
    .into_iter()
    .map(|(type_, problem)| condition(type_, problem, previous, now))
    .collect()
}

fn condition(
    type_: &str,
    problem: Option<(&str, String)>,
    previous: &PodStatus,
    now: Timestamp,
) -> PodCondition {
    let status = if problem.is_none() { "True" } else { "False" };
    let known = previous
        .conditions
        .iter()
        .flatten()
        .find(|known| known.type_ == type_ && known.status == status);
    let since = known
        .and_then(|known| known.last_transition_time.clone())
        .unwrap_or(Time(now));
    let (reason, message) = problem.unwrap_or_default();
    PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        message: Some(message).filter(|message| !message.is_empty()),
        last_transition_time: Some(since),
        ..PodCondition::default()
    }
}

/// Readiness gates whose conditions are not true.
fn closed_gates(pod: &Pod) -> Vec<&str> {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let open = |gate: &str| {
        conditions
            .clone()
            .any(|condition| condition.type_ == gate && condition.status == "True")
    };
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.readiness_gates.iter().flatten());
    gates
        .map(|gate| gate.condition_type.as_str())
        .filter(|gate| !open(gate))
        .collect()
}

/// Whether the readiness of a container is part of the pod's.
fn counts(member: &Member) -> bool {
    !member.init || member.role == Role::Sidecar
}

fn is_ready(member: &Member, view: &View<'_>) -> bool {
    let state = member.state.as_ref();
    let ready = state.is_some_and(|state| {
        if counts(member) {
            state.ready
        } else {
            member.makes_way()
        }
    });
    ready && !view.ending
}

fn container_status(member: &Member, view: &View<'_>) -> ContainerStatus {
    let image = member.container.image.clone().unwrap_or_default();
    let state = member.state.clone().unwrap_or_default();
    let phase = member
        .state
        .as_ref()
        .map_or_else(|| before_start(view), |state| state.phase.clone());
    let id = format!(
        "windlass://{}/{}/{}",
        view.pod.uid().unwrap_or_default(),
        member.container.name,
        state.restarts
    );
    ContainerStatus {
        name: member.container.name.clone(),
        image_id: image.clone(),
        image,
        container_id: (!matches!(phase, ContainerPhase::Waiting { .. })).then_some(id),
        ready: is_ready(member, view),
        started: Some(state.started),
        restart_count: i32::try_from(state.restarts).unwrap_or(i32::MAX),
        state: Some(container_state(&phase)),
        last_state: state
            .last
            .map(|ended| container_state(&ContainerPhase::Terminated(ended))),
        ..ContainerStatus::default()
    }
}

/// What a container waits for that was never started.
fn before_start(view: &View<'_>) -> ContainerPhase {
    if view
        .members
        .iter()
        .any(|member| member.init && member.state.is_some())
    {
        return ContainerPhase::Waiting {
            reason: "PodInitializing",
            message: String::new(),
        };
    }
    ContainerPhase::waiting(view.message)
}

fn container_state(phase: &ContainerPhase) -> ContainerState {
    let mut state = ContainerState::default();
    match phase {
        ContainerPhase::Waiting { reason, message } => {
            let message = Some(message.clone()).filter(|message| !message.is_empty());
            state.waiting = Some(ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message,
            });
        }
        ContainerPhase::Running { started_at } => {
            state.running = Some(ContainerStateRunning {
                started_at: Some(Time(*started_at)),
            });
        }
        ContainerPhase::Terminated(ended) => state.terminated = Some(terminated(ended)),
    }
    state
}

fn terminated(ended: &Terminated) -> ContainerStateTerminated {
    let by_code = if ended.exit_code == 0 {
        "Completed"
    } else {
        "Error"
    };
    ContainerStateTerminated {
        exit_code: ended.exit_code,
        reason: Some(ended.reason.unwrap_or(by_code).to_owned()),
        message: ended.message.clone(),
        started_at: Some(Time(ended.started_at)),
        finished_at: Some(Time(ended.finished_at)),
        ..ContainerStateTerminated::default()
    }
}

#[cfg(test)]
mod tests;
