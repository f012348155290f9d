//! The containers of a pod, and which of them starts or stops next.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use crate::container::{ContainerRecord, Role};

/// A container of a pod.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) container: Container,
    pub(super) role: Role,
    /// It stands under `initContainers`.
    pub(super) init: bool,
    /// `None` until it is started for the first time.
    pub(super) state: Option<ContainerRecord>,
}

/// What a pod does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodAction {
    /// Start this container.
    Start(usize),
    /// Nothing, until a container is in another state.
    Wait,
    /// Let these containers end.
    Stop(Vec<usize>),
    /// Nothing runs, and nothing will.
    End,
}

impl Member {
    /// The containers of a pod in the order in which they start.
    pub(super) fn all(spec: &PodSpec) -> Vec<Self> {
        let policy = spec.restart_policy.as_deref();
        let init = spec.init_containers.iter().flatten().map(|container| Self {
            container: container.clone(),
            role: Role::of_init_container(container.restart_policy.as_deref(), policy),
            init: true,
            state: None,
        });
        let main = spec.containers.iter().map(|container| Self {
            container: container.clone(),
            role: Role::of_container(policy),
            init: false,
            state: None,
        });
        init.chain(main).collect()
    }

    /// Marks it as started.
    pub(super) fn start(&mut self) {
        self.state.get_or_insert_default();
    }

    /// Whether what comes after it may start.
    pub(super) fn makes_way(&self) -> bool {
        match (&self.state, self.role) {
            (None, _) => false,
            (Some(state), Role::Sidecar) => state.started,
            (Some(_), _) if !self.init => true,
            (Some(state), _) => state.outcome().is_some_and(|outcome| outcome.exit_code == 0),
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.finished)
    }

    /// Whether it has failed for good, and the pod with it.
    pub(super) fn fails_the_pod(&self) -> bool {
        self.init && self.role != Role::Sidecar && self.is_finished() && !self.makes_way()
    }

    fn runs(&self) -> bool {
        self.state.as_ref().is_some_and(|state| !state.finished)
    }
}

impl PodAction {
    /// What the pod does next; `stopping` says that it is to be deleted.
    ///
    /// Sidecars end after the others, the last one first (KEP-753).
    pub(super) fn of(members: &[Member], stopping: bool) -> Self {
        if !stopping && !is_over(members) {
            let next = members.iter().position(|member| !member.makes_way());
            return match next {
                Some(number) if members[number].state.is_none() => Self::Start(number),
                _ => Self::Wait,
            };
        }
        let running = |sidecar: bool| {
            let matching = move |member: &Member| member.runs() && (member.role == Role::Sidecar) == sidecar;
            members
                .iter()
                .enumerate()
                .filter(move |(_, member)| matching(member))
                .map(|(number, _)| number)
        };
        let others: Vec<_> = running(false).collect();
        if !others.is_empty() {
            return Self::Stop(others);
        }
        running(true)
            .next_back()
            .map_or(Self::End, |sidecar| Self::Stop(vec![sidecar]))
    }
}

/// Whether the pod has done its work, or can't.
fn is_over(members: &[Member]) -> bool {
    members.iter().any(Member::fails_the_pod)
        || members
            .iter()
            .filter(|member| !member.init)
            .all(Member::is_finished)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn members(restart_policy: &str) -> Vec<Member> {
        let spec: PodSpec = serde_json::from_value(json!({
            "restartPolicy": restart_policy,
            "initContainers": [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}],
            "containers": [{"name": "a"}, {"name": "b"}],
        }))
        .unwrap();
        Member::all(&spec)
    }

    fn running() -> Option<ContainerRecord> {
        Some(ContainerRecord::running(true))
    }

    fn ended(exit_code: i32) -> Option<ContainerRecord> {
        Some(ContainerRecord::ended(exit_code))
    }

    #[test]
    fn containers_start_in_order_and_the_main_ones_side_by_side() {
        let mut members = members("Always");
        let mut steps = vec![PodAction::of(&members, false)];
        for (number, state) in [
            (0, running()),
            (0, ended(0)),
            (1, Some(ContainerRecord::default())),
            (1, running()),
            (2, running()),
        ] {
            members[number].state = state;
            steps.push(PodAction::of(&members, false));
        }
        members[3].start();
        steps.push(PodAction::of(&members, false));
        use PodAction::{Start, Wait};
        assert_eq!(steps, [Start(0), Wait, Start(1), Wait, Start(2), Start(3), Wait]);
    }

    #[test]
    fn sidecars_end_last_whether_the_pod_is_deleted_or_done() {
        for (stopping, state) in [(true, running()), (false, ended(0))] {
            let mut members = members("Never");
            members[0].state = ended(0);
            members[1].state = running();
            members[2].state = state.clone();
            members[3].state = state;
            if stopping {
                assert_eq!(PodAction::of(&members, stopping), PodAction::Stop(vec![2, 3]));
                members[2].state = ended(143);
                members[3].state = ended(143);
            }
            assert_eq!(PodAction::of(&members, stopping), PodAction::Stop(vec![1]));
            members[1].state = ended(143);
            assert_eq!(PodAction::of(&members, stopping), PodAction::End);
        }
    }

    #[test]
    fn an_init_container_that_fails_for_good_fails_the_pod() {
        let mut members = members("Never");
        members[0].state = ended(1);
        assert!(members[0].fails_the_pod());
        assert_eq!(PodAction::of(&members, false), PodAction::End);
    }

    proptest! {
        #[test]
        fn a_pod_that_is_to_end_starts_nothing(states in proptest::collection::vec(0_u8..4, 4)) {
            let mut members = members("Always");
            for (member, state) in members.iter_mut().zip(&states) {
                member.state = match state {
                    0 => None,
                    1 => running(),
                    code => ended(i32::from(*code) - 2),
                };
            }
            match PodAction::of(&members, true) {
                PodAction::Stop(numbers) => prop_assert!(numbers.iter().all(|number| states[*number] == 1)),
                next => prop_assert!(next == PodAction::End && !states.contains(&1)),
            }
        }
    }
}
