//! A BundleDeployment that is paused: somebody works on what it has installed. Nothing is applied, upgraded or removed;
//! certificates and CA bundles are kept by the rotation, as ever, and conversions here.

use serde_json::Value;
use windlass_api::{BundleDeployment, BundleDeploymentStatus};
use windlass_cluster::{lease::NotLeading, worker::Action};
use windlass_object::{names, object};

use super::{
    halt::{BundleDeploymentError, Halt, LAG},
    reconciler::BundleReconciler,
    report::PAUSED,
};
use crate::install::status::{ConditionUpdate, Conditions};

/// The reason of conditions of what is paused.
const REASON: &str = "Paused";

/// The value of the annotation that pauses, if it does.
pub(super) fn paused_by(deployment: &Value) -> Option<&str> {
    object::annotation(deployment, names::PAUSED).filter(|value| *value != "false")
}

impl BundleReconciler {
    /// Reconciles a paused BundleDeployment: restores changed conversions and writes the status, and nothing
    /// else. `why` is the value of the annotation.
    pub(super) async fn hold(
        &self,
        object: &Value,
        deployment: &BundleDeployment,
        why: &str,
    ) -> Result<Action, BundleDeploymentError> {
        let owner = self.owner(deployment);
        let restored = self.restore_conversions(deployment, &owner).await;
        let known = deployment.status.clone().unwrap_or_default();
        let now = self.context.clock.now();
        let status = paused(known, deployment.metadata.generation, why, now);
        if !self.write_status(object, deployment, status).await? {
            return Ok(Action::Requeue(LAG));
        }
        match restored {
            Err(Halt::Error(error)) if NotLeading::is_cause_of(&error) => Err(error),
            Err(Halt::Error(error)) => {
                let name = deployment.metadata.name.as_deref();
                tracing::warn!(bundle_deployment = name, %error, "Cannot restore conversions while paused");
                Err(error)
            }
            // The source may be another one by now, or be gone.
            Err(Halt::Gate(_) | Halt::Later(..)) => Ok(Action::Requeue(self.timing.recheck)),
            Ok(()) => Ok(Action::AwaitChange),
        }
    }
}

/// The status `known` of what is paused. What it says of the spec stays; where the spec has changed since, it is not
/// ready any more.
fn paused(
    mut known: BundleDeploymentStatus,
    generation: Option<i64>,
    why: &str,
    now: jiff::Timestamp,
) -> BundleDeploymentStatus {
    let message = format!(
        "paused by the annotation {}: {why:?}; certificates, CA bundles and conversions are maintained, everything else waits until the annotation is removed",
        names::PAUSED
    );
    let is_changed = known.observed_generation != generation;
    // Others wait to hear what it claims: what it did.
    known.observed_generation = generation;
    let conditions = &mut known.conditions;
    let mut say = |condition_type, verdict| conditions.record(condition_type, verdict, generation, now);
    say(PAUSED, ConditionUpdate::holds(REASON, &message));
    say("Progressing", ConditionUpdate::fails(REASON, &message));
    if is_changed {
        say("Ready", ConditionUpdate::fails(REASON, &message));
        conditions.record_failure(None, generation, now);
    }
    known
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use windlass_api::STALLED;

    use super::*;

    #[test]
    fn any_value_but_false_pauses() {
        for (value, expected) in [
            (json!({"windlass.dev/paused": "true"}), Some("true")),
            (
                json!({"windlass.dev/paused": "hot fix, ask Ann"}),
                Some("hot fix, ask Ann"),
            ),
            (json!({"windlass.dev/paused": ""}), Some("")),
            (json!({"windlass.dev/paused": "false"}), None),
            (json!({}), None),
        ] {
            assert_eq!(paused_by(&json!({"metadata": {"annotations": value}})), expected);
        }
    }

    #[test]
    fn what_is_paused_stays_ready_unless_something_else_is_asked_for() {
        let now = Timestamp::from_second(1).unwrap();
        let mut known = BundleDeploymentStatus {
            observed_generation: Some(1),
            ..BundleDeploymentStatus::default()
        };
        known
            .conditions
            .record("Ready", ConditionUpdate::holds("Ready", ""), Some(1), now);
        let refused = ConditionUpdate::fails("Downgrade", "");
        known.conditions.record_failure(Some(refused), Some(1), now);
        let held = paused(known, Some(1), "true", now);
        assert!(
            held.conditions.holds(STALLED),
            "the spec is still the refused one"
        );
        assert!(held.conditions.holds(PAUSED) && held.conditions.holds("Ready"));
        assert_eq!(held.conditions.find("Progressing").unwrap().reason, REASON);
        assert_eq!(paused(held.clone(), Some(1), "true", now), held);
        let changed = paused(held, Some(2), "true", now);
        assert!(!changed.conditions.holds("Ready") && !changed.conditions.holds(STALLED));
        assert_eq!(changed.observed_generation, Some(2));
        let later = paused(changed.clone(), Some(2), "true", now);
        assert_eq!(later, changed);
    }
}
