//! How far an install is.

use windlass_api::ConditionUpdate;

use super::bundle_health::BundleHealth;

/// One step of the pipeline of an install.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Milestone {
    /// The bundle was read, has no problem, and nothing in the cluster speaks against it.
    Accepted,
    /// Every object is applied.
    Installed,
    /// Every Deployment has rolled out and is available, and no other object is known to be unhealthy.
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

/// Reasons of failures that may end without a change of the BundleDeployment or of the bundle: another object of the
/// same GitOps run ends them, the running operator does, or an approval.
const ENDING: [&str; 5] = [
    "RequirementsNotMet",
    "NotUpgradeable",
    "ServiceAccountNotFound",
    "ServiceAccountLacksRights",
    "WaitingForApproval",
];

/// The state of the installed revision, for conditions that describe it while another revision is installed
/// or rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing else is installed than what is wanted: the outcome says it all.
    Alone {
        /// API traffic goes to every webhook, although an earlier step is not done (any more).
        armed: bool,
        /// Whether its objects do what they are for.
        health: BundleHealth,
    },
    /// Another revision is under way beside it.
    Beside {
        /// Its Deployments are available; else why not.
        available: Result<(), String>,
        /// Whether its other objects do what they are for.
        health: BundleHealth,
        /// API traffic goes to every webhook of it.
        armed: bool,
    },
    /// Another revision is refused, and it was walked as ever.
    Kept {
        /// How far that came.
        outcome: InstallOutcome,
        /// API traffic goes to every webhook of it.
        armed: bool,
        /// Whether its objects do what they are for.
        health: BundleHealth,
    },
}

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

    /// The milestone that is not reached yet, if there is one.
    pub fn at(&self) -> Option<Milestone> {
        match self {
            Self::Done => None,
            Self::Waiting { at, .. } | Self::Failed { at, .. } => Some(*at),
        }
    }

    /// The reason and the message of an install that is not done.
    pub fn news(&self) -> Option<(&str, &str)> {
        match self {
            Self::Done => None,
            Self::Waiting { reason, message, .. } | Self::Failed { reason, message, .. } => {
                Some((reason, message))
            }
        }
    }

    /// Returns the failure that ends only when a user acts, for the condition Stalled.
    pub fn failure(&self) -> Option<ConditionUpdate> {
        match self {
            Self::Failed { reason, message, .. } if !ENDING.contains(&&**reason) => {
                Some(ConditionUpdate::holds(reason, message))
            }
            _ => None,
        }
    }

    /// Returns the conditions: one for each step, then Progressing and Ready. Available and Armed describe
    /// the installed revision, the others the desired one; if that is rejected, all but Accepted describe the
    /// installed one.
    pub fn conditions(&self, standing: &Standing) -> Vec<(&'static str, ConditionUpdate)> {
        let mut conditions: Vec<_> = Milestone::ALL
            .into_iter()
            .map(|step| (step.condition(), self.standing_at(step, standing)))
            .collect();
        let ailing = standing.health().verdict();
        conditions.push(match (self, &ailing) {
            (Self::Done, None) => (
                "Progressing",
                ConditionUpdate::fails("Done", "nothing left to do"),
            ),
            // What is known not to be healthy yet may become so by itself.
            (Self::Done, Some(ailing)) if ailing.status == "False" => (
                "Progressing",
                ConditionUpdate::holds(&ailing.reason, &ailing.message),
            ),
            (Self::Done, Some(ailing)) => (
                "Progressing",
                ConditionUpdate::fails(&ailing.reason, &ailing.message),
            ),
            (Self::Waiting { reason, message, .. }, _) => {
                ("Progressing", ConditionUpdate::holds(reason, message))
            }
            (Self::Failed { reason, message, .. }, _) => {
                ("Progressing", ConditionUpdate::fails(reason, message))
            }
        });
        let ready = match (self.news(), ailing) {
            (None, None) => ConditionUpdate::holds("Ready", "installed, available and armed"),
            (None, Some(ailing)) => ailing,
            (Some((reason, message)), _) => match standing.trouble() {
                None => ConditionUpdate::fails(reason, message),
                Some(trouble) => ConditionUpdate::fails(reason, format!("{message}; {trouble}")),
            },
        };
        conditions.push(("Ready", ready));
        conditions
    }

    /// What is said of one step. Where Deployments are available, the health of the other objects decides.
    fn standing_at(&self, step: Milestone, standing: &Standing) -> ConditionUpdate {
        let verdict = self.reached(step, standing);
        match standing.health().verdict() {
            Some(ailing) if step == Milestone::Available && verdict.status == "True" => ailing,
            _ => verdict,
        }
    }

    fn reached(&self, step: Milestone, standing: &Standing) -> ConditionUpdate {
        match (standing, step) {
            (Standing::Alone { armed, .. }, _) => self.verdict(step, *armed),
            (Standing::Kept { outcome, armed, .. }, step) if step > Milestone::Accepted => {
                outcome.verdict(step, *armed)
            }
            (Standing::Beside { available, .. }, Milestone::Available) => match available {
                Ok(()) => {
                    ConditionUpdate::holds("Done", "every Deployment of the installed revision is available")
                }
                Err(message) => ConditionUpdate::fails("Unavailable", message),
            },
            (Standing::Beside { armed: true, .. }, Milestone::Armed) => {
                ConditionUpdate::holds("Done", "every webhook of the installed revision is armed")
            }
            _ => self.verdict(step, false),
        }
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

impl Standing {
    /// Whether the objects of what it is about do what they are for.
    fn health(&self) -> &BundleHealth {
        match self {
            Self::Alone { health, .. } | Self::Beside { health, .. } | Self::Kept { health, .. } => health,
        }
    }

    /// What is wrong beside what keeps the install from going on.
    fn trouble(&self) -> Option<String> {
        let ailing = self.health().message();
        let of_installed = match self {
            Self::Alone { .. } => return ailing.map(str::to_owned),
            Self::Kept { outcome, .. } => outcome.news().map(|(_, message)| message),
            Self::Beside { available, .. } => available.as_ref().err().map(String::as_str),
        };
        let trouble = of_installed.or(ailing)?;
        Some(format!("problem of the installed revision: {trouble}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(armed: bool) -> Standing {
        Standing::Alone {
            armed,
            health: BundleHealth::Healthy,
        }
    }

    #[test]
    fn what_comes_before_the_step_holds_and_what_comes_after_is_unknown() {
        let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", "1 of 2 replicas");
        let conditions: Vec<_> = outcome
            .conditions(&alone(false))
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
        let armed = |armed| outcome.conditions(&alone(armed))[3].1.status;
        assert_eq!((armed(true), armed(false)), ("True", "Unknown"));
    }

    #[test]
    fn done_is_ready_and_no_longer_progressing() {
        let conditions = InstallOutcome::Done.conditions(&alone(true));
        let failing: Vec<_> = conditions
            .iter()
            .filter(|(_, verdict)| verdict.status != "True")
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(failing, ["Progressing"]);
    }

    #[test]
    fn an_install_fails_only_if_a_user_must_act() {
        let failed = |reason| InstallOutcome::failed(Milestone::Accepted, reason, "what to do");
        let waiting = |reason| InstallOutcome::waiting(Milestone::Available, reason, "a moment");
        for (outcome, expected) in [
            (InstallOutcome::Done, None),
            (waiting("RollingOut"), None),
            (waiting("Retrying"), None),
            (waiting("SourceMissing"), None),
            (failed("RequirementsNotMet"), None),
            (failed("NotUpgradeable"), None),
            (failed("ServiceAccountLacksRights"), None),
            (failed("WaitingForApproval"), None),
            (failed("ForeignObject"), Some("ForeignObject")),
            (failed("Downgrade"), Some("Downgrade")),
            (failed("BundleInvalid"), Some("BundleInvalid")),
            (failed("RolloutStuck"), Some("RolloutStuck")),
        ] {
            let failure = outcome.failure();
            let reason = failure.as_ref().map(|failure| &*failure.reason);
            assert_eq!(reason, expected, "{outcome:?}");
            if let Some(failure) = failure {
                assert_eq!((failure.status, &*failure.message), ("True", "what to do"));
            }
        }
    }

    fn statuses(outcome: &InstallOutcome, standing: &Standing) -> Vec<&'static str> {
        let conditions = outcome.conditions(standing);
        conditions
            .into_iter()
            .map(|(_, verdict)| verdict.status)
            .collect()
    }

    #[test]
    fn an_alert_can_tell_a_refused_revision_from_one_that_is_down() {
        let refused = InstallOutcome::failed(Milestone::Accepted, "Downgrade", "older");
        let kept = |outcome| Standing::Kept {
            outcome,
            armed: true,
            health: BundleHealth::Healthy,
        };
        let statuses = |outcome| statuses(&refused, &kept(outcome));
        assert_eq!(
            statuses(InstallOutcome::Done),
            ["False", "True", "True", "True", "True", "False", "False"]
        );
        let down = InstallOutcome::waiting(Milestone::Available, "RollingOut", "0 of 1 replicas");
        assert_eq!(
            statuses(down.clone()),
            ["False", "True", "False", "True", "Unknown", "False", "False"]
        );
        let ready = refused.conditions(&kept(down)).pop().unwrap().1;
        assert_eq!(ready.reason, "Downgrade");
        assert_eq!(
            ready.message,
            "older; problem of the installed revision: 0 of 1 replicas"
        );
    }

    #[test]
    fn what_is_installed_is_available_and_armed_while_another_revision_is_under_way() {
        let rolling = InstallOutcome::waiting(Milestone::Installed, "CanaryWaiting", "starting");
        let beside = |available, armed| Standing::Beside {
            available,
            health: BundleHealth::Healthy,
            armed,
        };
        assert_eq!(
            statuses(&rolling, &beside(Ok(()), true)),
            ["True", "False", "True", "True", "Unknown", "True", "False"]
        );
        assert_eq!(
            statuses(&rolling, &beside(Err("gone".to_owned()), false)),
            ["True", "False", "False", "Unknown", "Unknown", "True", "False"]
        );
    }

    fn ailing(is_known: bool) -> BundleHealth {
        let message = "Widget a is broken".to_owned();
        match is_known {
            true => BundleHealth::Unhealthy { message },
            false => BundleHealth::Unknown { message },
        }
    }

    #[test]
    fn objects_that_are_not_healthy_only_make_what_is_done_unavailable() {
        for (is_known, available, progressing, ready, reason) in [
            (true, "False", "True", "False", "ObjectUnhealthy"),
            (false, "Unknown", "False", "Unknown", "HealthUnknown"),
        ] {
            let standing = Standing::Alone {
                armed: true,
                health: ailing(is_known),
            };
            assert_eq!(
                statuses(&InstallOutcome::Done, &standing),
                ["True", "True", available, "True", "True", progressing, ready]
            );
            let last = InstallOutcome::Done.conditions(&standing).pop().unwrap().1;
            assert_eq!((&*last.reason, &*last.message), (reason, "Widget a is broken"));
        }
    }

    #[test]
    fn health_is_said_beside_what_an_install_waits_for() {
        let standing = Standing::Alone {
            armed: true,
            health: ailing(true),
        };
        let rewriting = InstallOutcome::waiting(Milestone::Migrated, "Rewriting", "1 of 2 objects");
        assert_eq!(
            statuses(&rewriting, &standing),
            ["True", "True", "False", "True", "False", "True", "False"]
        );
        let ready = rewriting.conditions(&standing).pop().unwrap().1;
        assert_eq!(ready.message, "1 of 2 objects; Widget a is broken");
        let down = InstallOutcome::waiting(Milestone::Available, "RollingOut", "0 of 1 replicas");
        let available = down.conditions(&standing)[2].1.clone();
        assert_eq!(available.reason, "RollingOut", "Deployments come first");
    }

    #[test]
    fn what_is_installed_is_unavailable_while_its_objects_are_not_healthy() {
        let refused = InstallOutcome::failed(Milestone::Accepted, "Downgrade", "older");
        let kept = Standing::Kept {
            outcome: InstallOutcome::Done,
            armed: true,
            health: ailing(true),
        };
        let beside = Standing::Beside {
            available: Ok(()),
            health: ailing(true),
            armed: true,
        };
        for standing in [kept, beside] {
            assert_eq!(refused.conditions(&standing)[2].1.reason, "ObjectUnhealthy");
            let ready = refused.conditions(&standing).pop().unwrap().1;
            assert_eq!(
                ready.message,
                "older; problem of the installed revision: Widget a is broken"
            );
        }
    }
}
