//! How far an install is.

use super::conditions::ConditionUpdate;

/// One step of the pipeline of an install.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Milestone {
    /// The bundle was read, has no problem, and nothing in the cluster speaks against it.
    Accepted,
    /// Every object is applied.
    Installed,
    /// Every Deployment has rolled out and is available.
    Available,
    /// Every webhook is proven, and API traffic goes to it.
    Armed,
    /// Every object is stored in the version that the bundle stores.
    Migrated,
}

/// How an install stands: at which step it is, and why it goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallOutcome {
    /// Every step is done.
    Done,
    /// The step is under way and goes on by itself.
    Waiting {
        /// The milestone that is not reached yet.
        at: Milestone,
        /// One word in CamelCase.
        reason: String,
        /// What is waited for.
        message: String,
    },
    /// Somebody has to do something.
    Failed {
        /// The milestone that is not reached yet.
        at: Milestone,
        /// One word in CamelCase.
        reason: String,
        /// What is wrong, and what to do next.
        message: String,
    },
}

// === impl Milestone ===

impl Milestone {
    /// Every step, in order.
    pub const ALL: [Self; 5] = [
        Self::Accepted,
        Self::Installed,
        Self::Available,
        Self::Armed,
        Self::Migrated,
    ];

    /// The type of its condition in the status of the BundleDeployment.
    pub fn condition(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Installed => "Installed",
            Self::Available => "Available",
            Self::Armed => "Armed",
            Self::Migrated => "Migrated",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Accepted => "the bundle is valid and conflicts with nothing in the cluster",
            Self::Installed => "every object is applied",
            Self::Available => "every Deployment is available",
            Self::Armed => "every webhook is proven and armed",
            Self::Migrated => "every object is stored in the version that the bundle stores",
        }
    }
}

// === impl InstallOutcome ===

impl InstallOutcome {
    /// Waits at `at`.
    pub fn waiting(at: Milestone, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Waiting {
            at,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// Fails at `at`.
    pub fn failed(at: Milestone, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed {
            at,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// The conditions that say it: one for each step, then Progressing and Ready.
    ///
    /// `armed`: API traffic goes to every webhook, although an earlier step is not done (any more).
    pub fn conditions(&self, armed: bool) -> Vec<(&'static str, ConditionUpdate)> {
        let mut conditions: Vec<_> = Milestone::ALL
            .into_iter()
            .map(|step| (step.condition(), self.verdict(step, armed)))
            .collect();
        conditions.push(match self {
            Self::Done => (
                "Progressing",
                ConditionUpdate::fails("Done", "nothing left to do"),
            ),
            Self::Waiting { reason, message, .. } => ("Progressing", ConditionUpdate::holds(reason, message)),
            Self::Failed { reason, message, .. } => ("Progressing", ConditionUpdate::fails(reason, message)),
        });
        conditions.push(match self {
            Self::Done => (
                "Ready",
                ConditionUpdate::holds("Ready", "installed, available and armed"),
            ),
            Self::Waiting { reason, message, .. } | Self::Failed { reason, message, .. } => {
                ("Ready", ConditionUpdate::fails(reason, message))
            }
        });
        conditions
    }

    fn verdict(&self, step: Milestone, armed: bool) -> ConditionUpdate {
        let (at, reason, message) = match self {
            Self::Done => return ConditionUpdate::holds("Done", step.done()),
            Self::Waiting { at, reason, message } | Self::Failed { at, reason, message } => {
                (*at, reason, message)
            }
        };
        if step < at || (armed && step == Milestone::Armed && at < Milestone::Armed) {
            return ConditionUpdate::holds("Done", step.done());
        }
        if step == at {
            return ConditionUpdate::fails(reason, message);
        }
        ConditionUpdate::unknown("NotReached", format!("waiting for condition {}", at.condition()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_step_holds_and_what_comes_after_is_unknown() {
        let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", "1 of 2 replicas");
        let conditions: Vec<_> = outcome
            .conditions(false)
            .into_iter()
            .map(|(name, verdict)| (name, verdict.status))
            .collect();
        assert_eq!(
            conditions,
            [
                ("Accepted", "True"),
                ("Installed", "True"),
                ("Available", "False"),
                ("Armed", "Unknown"),
                ("Migrated", "Unknown"),
                ("Progressing", "True"),
                ("Ready", "False")
            ]
        );
    }

    #[test]
    fn what_is_armed_stays_armed_while_a_deployment_is_down() {
        let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", "0 of 2 replicas");
        let armed = |armed| outcome.conditions(armed)[3].1.status;
        assert_eq!((armed(true), armed(false)), ("True", "Unknown"));
    }

    #[test]
    fn done_is_ready_and_no_longer_progressing() {
        let conditions = InstallOutcome::Done.conditions(true);
        let failing: Vec<_> = conditions
            .iter()
            .filter(|(_, verdict)| verdict.status != "True")
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(failing, ["Progressing"]);
    }
}
