//! The state of a container, as its status shows it.

use jiff::Timestamp;

/// What a container is in its pod, and with that when it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs to its end before the others; is repeated on failure where the pod restarts anything.
    Init { repeat: bool },
    /// An init container that runs beside the others (KEP-753): always restarted.
    Sidecar,
    /// The pod restarts it always,
    Always,
    /// on failure,
    OnFailure,
    /// or never.
    Never,
}

/// The state of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerRecord {
    pub(crate) phase: ContainerPhase,
    /// How it ended before it was started again.
    pub(crate) last: Option<Terminated>,
    pub(crate) restarts: u32,
    pub(crate) started: bool,
    pub(crate) ready: bool,
    /// It is not started again.
    pub(crate) finished: bool,
}

/// Whether a container runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContainerPhase {
    /// Not yet, or not yet again.
    Waiting { reason: &'static str, message: String },
    /// It runs.
    Running { started_at: Timestamp },
    /// It ended.
    Terminated(Terminated),
}

/// The end of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terminated {
    pub(crate) exit_code: i32,
    /// Where it is not `Completed` or `Error`, as the exit code says.
    pub(crate) reason: Option<&'static str>,
    /// What it said last, where its `terminationMessagePolicy` asks for that.
    pub(crate) message: Option<String>,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Timestamp,
}

impl Role {
    /// The role of a pod's container.
    pub(crate) fn of_container(restart_policy: Option<&str>) -> Self {
        match restart_policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// The role of a pod's init container.
    pub(crate) fn of_init_container(own_restart_policy: Option<&str>, restart_policy: Option<&str>) -> Self {
        match own_restart_policy {
            Some("Always") => Self::Sidecar,
            _ => Self::Init {
                repeat: restart_policy != Some("Never"),
            },
        }
    }

    /// Whether a container that ended so is started again.
    pub(crate) fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always | Self::Sidecar => true,
            Self::OnFailure | Self::Init { repeat: true } => exit_code != 0,
            Self::Never | Self::Init { repeat: false } => false,
        }
    }

    /// Whether the container is to come to an end.
    pub(crate) fn ends(self) -> bool {
        !matches!(self, Self::Always | Self::Sidecar)
    }
}

impl ContainerRecord {
    /// How the container ended for good.
    pub(crate) fn outcome(&self) -> Option<&Terminated> {
        match &self.phase {
            ContainerPhase::Terminated(ended) if self.finished => Some(ended),
            _ => None,
        }
    }
}

#[cfg(test)]
impl ContainerRecord {
    /// A container that runs.
    pub(crate) fn running(ready: bool) -> Self {
        let phase = ContainerPhase::Running {
            started_at: Timestamp::UNIX_EPOCH,
        };
        Self {
            phase,
            started: true,
            ready,
            ..Self::default()
        }
    }

    /// A container that has ended for good.
    pub(crate) fn ended(exit_code: i32) -> Self {
        let ended = Terminated {
            exit_code,
            reason: None,
            message: None,
            started_at: Timestamp::UNIX_EPOCH,
            finished_at: Timestamp::UNIX_EPOCH,
        };
        Self {
            phase: ContainerPhase::Terminated(ended),
            finished: true,
            ..Self::default()
        }
    }
}

impl Default for ContainerRecord {
    fn default() -> Self {
        Self {
            phase: ContainerPhase::waiting(""),
            last: None,
            restarts: 0,
            started: false,
            ready: false,
            finished: false,
        }
    }
}

impl ContainerPhase {
    /// A container that waits for its pod.
    pub(crate) fn waiting(message: &str) -> Self {
        Self::Waiting {
            reason: "ContainerCreating",
            message: message.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_policies_hold() {
        for (role, after_success, after_failure) in [
            (Role::of_container(None), true, true),
            (Role::of_container(Some("OnFailure")), false, true),
            (Role::of_container(Some("Never")), false, false),
            (Role::of_init_container(None, Some("Always")), false, true),
            (Role::of_init_container(None, Some("Never")), false, false),
            (Role::of_init_container(Some("Always"), Some("Never")), true, true),
        ] {
            assert_eq!(
                (role.restarts(0), role.restarts(1)),
                (after_success, after_failure),
                "{role:?}"
            );
        }
    }
}
