//! Obstacles that prevent the observation of a ServingCertificate.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use windlass_api::ServingCertificateStatus;
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    objects::{CaSecret, CertificateRequirements, ServingSecret},
    rotation::Reason,
};

use super::{conflict::EXCLUSIVE, desired::DesiredCertificate};
use crate::install::status::ConditionUpdate;

/// The summary condition.
pub(super) const READY: &str = "Ready";

/// The condition about targets.
pub(super) const TRUSTED: &str = "Trusted";

/// The condition about endpoints.
pub(super) const SERVED: &str = "Served";

/// The reason of the only obstacle that ends without a user.
const TERMINATING: &str = "SecretTerminating";

/// Why a rotation cannot be planned.
pub(super) struct ObservationObstacle {
    /// The condition that is `False`.
    pub(super) condition: &'static str,
    /// Reason of the condition, in CamelCase.
    pub(super) reason: &'static str,
    /// The obstacle, and what to do about it.
    pub(super) message: String,
}

impl ObservationObstacle {
    /// Creates an obstacle that makes the condition Ready `False`.
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            condition: READY,
            reason,
            message: message.into(),
        }
    }

    /// Creates the obstacle that another installation manages the certificate, which also reports Ready.
    pub(super) fn conflict(own_namespace: &str, keeper: &str) -> Self {
        Self {
            condition: EXCLUSIVE,
            reason: "OperatorConflict",
            message: format!(
                "the Windlass in namespace {keeper} already manages this certificate, so the one in {own_namespace} does not: remove one of them"
            ),
        }
    }

    /// Returns the conditions to set. Targets and endpoints are not observed while there is an obstacle,
    /// unless another installation does it. If Ready already reports an expiring server, that alarm stays.
    pub(super) fn conditions(&self, known: &[Condition]) -> Vec<(&'static str, ConditionUpdate)> {
        let fails = (self.condition, ConditionUpdate::fails(self.reason, &self.message));
        if self.condition != READY {
            return vec![fails];
        }
        let unseen = |condition| (condition, ConditionUpdate::unknown(self.reason, &self.message));
        let ready = known.iter().find(|condition| condition.type_ == READY);
        let is_alarming = ready.is_some_and(|ready| ready.reason == Reason::NotReloaded.to_string());
        let fails = (!is_alarming).then_some(fails);
        let unseen = [TRUSTED, SERVED].map(unseen);
        unseen.into_iter().chain(fails).collect()
    }

    /// Returns the generation that the status reflects after an obstacle was reported. If the obstacle does not
    /// change Ready, Ready still describes the generation that was observed before.
    pub(super) fn observed_generation(
        &self,
        generation: Option<i64>,
        known: &ServingCertificateStatus,
    ) -> Option<i64> {
        match self.condition {
            READY => generation,
            _ => known.observed_generation,
        }
    }

    /// Returns the failure for the condition Stalled, unless the obstacle ends without a user.
    pub(super) fn failure(&self) -> Option<ConditionUpdate> {
        (self.reason != TERMINATING).then(|| ConditionUpdate::holds(self.reason, &self.message))
    }

    fn terminating(object: &ObjectKey) -> Self {
        let message = format!("waiting for {object} to be deleted before recreating it");
        Self::new(TERMINATING, message)
    }
}

/// Returns why the CA Secret must not be read.
pub(super) fn ca_secret_obstacle(
    secret: &Value,
    desired: &DesiredCertificate,
) -> Option<ObservationObstacle> {
    let key = ObjectKey::from_object(secret)?;
    if object::is_terminating(secret) {
        return Some(ObservationObstacle::terminating(&key));
    }
    if !CaSecret::was_created_for(secret, &desired.key) {
        let message = format!("{key} exists and was not created by Windlass: delete it");
        return Some(ObservationObstacle::new("ForeignSecret", message));
    }
    CaSecret::objection(secret)
        .map(|objection| ObservationObstacle::new("NewerVersion", format!("{key}: {objection}")))
}

/// Returns why the serving Secret must not be read.
pub(super) fn serving_secret_obstacle(
    secret: &Value,
    requirements: &CertificateRequirements<'_>,
) -> Option<ObservationObstacle> {
    if object::is_terminating(secret) {
        return ObjectKey::from_object(secret).map(|key| ObservationObstacle::terminating(&key));
    }
    ServingSecret::objection(secret, requirements)
        .map(|message| ObservationObstacle::new("ForeignSecret", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_changes_only_the_condition_exclusive() {
        let touched = |obstacle: &ObservationObstacle| -> Vec<_> {
            let verdicts = obstacle.conditions(&[]).into_iter();
            verdicts
                .map(|(condition, verdict)| (condition, verdict.status))
                .collect()
        };
        let conflict = ObservationObstacle::conflict("here", "there");
        assert_eq!(touched(&conflict), [(EXCLUSIVE, "False")]);
        let foreign = ObservationObstacle::new("ForeignSecret", "delete it");
        let expected = [(TRUSTED, "Unknown"), (SERVED, "Unknown"), (READY, "False")];
        assert_eq!(touched(&foreign), expected);
    }

    #[test]
    fn a_conflict_leaves_the_generation_that_ready_describes() {
        let known = ServingCertificateStatus {
            observed_generation: Some(1),
            ..ServingCertificateStatus::default()
        };
        let conflict = ObservationObstacle::conflict("here", "there");
        let foreign = ObservationObstacle::new("ForeignSecret", "delete it");
        assert_eq!(conflict.observed_generation(Some(2), &known), Some(1));
        assert_eq!(foreign.observed_generation(Some(2), &known), Some(2));
    }

    #[test]
    fn an_obstacle_is_a_failure_unless_it_ends_without_a_user() {
        let secret: ObjectKey = windlass_cluster::kinds::SECRET.object(Some("shop"), "web");
        for (obstacle, expected) in [
            (ObservationObstacle::terminating(&secret), None),
            (
                ObservationObstacle::new("ForeignSecret", "delete it"),
                Some("ForeignSecret"),
            ),
            (
                ObservationObstacle::new("InvalidNames", "correct it"),
                Some("InvalidNames"),
            ),
            (
                ObservationObstacle::new("NewerVersion", "install it"),
                Some("NewerVersion"),
            ),
        ] {
            let failure = obstacle.failure().map(|failure| failure.reason);
            assert_eq!(failure.as_deref(), expected);
        }
    }
}
