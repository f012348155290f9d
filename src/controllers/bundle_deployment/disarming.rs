//! Disarming what a new bundle no longer has, before the revision that serves it goes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Halt, Reconciler};
use crate::{
    api::names,
    cluster::{Kind, RequestError, apply::Owner, kinds},
    domain::{
        definition::{is_converting, storage_version},
        object::{self, ObjectKey},
        plan::{Phase, Plan, Stage, calls_elsewhere, may_stop_converting, staged},
        status::{Standing, Step},
    },
};

/// The kinds that send API traffic to admission webhooks.
pub(super) const ADMISSION_KINDS: [Kind; 2] = [
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
];

/// When something was disarmed last, by BundleDeployment: API servers hear of it later.
///
/// A process that has just started does not know what the one before it disarmed. It waits as if that had been now.
pub(super) struct Disarmed {
    started: Timestamp,
    last: Mutex<HashMap<String, Timestamp>>,
}

// === impl Disarmed ===

impl Disarmed {
    pub(super) fn new(started: Timestamp) -> Self {
        Self {
            started,
            last: Mutex::default(),
        }
    }

    /// Notes that something was disarmed for a BundleDeployment.
    pub(super) fn note(&self, name: &str, now: Timestamp) {
        self.last.lock().insert(name.to_owned(), now);
    }

    /// Forgets a BundleDeployment that is gone.
    pub(super) fn forget(&self, name: &str) {
        self.last.lock().remove(name);
    }

    /// How much of `delay` is left.
    fn left(&self, name: &str, now: Timestamp, delay: Duration) -> Option<Duration> {
        let since = self.last.lock().get(name).copied().unwrap_or(self.started);
        let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        delay.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

// === impl Reconciler ===

impl Reconciler {
    /// Disarms what the plan no longer has, and what it has at another place: no pod of the new revision need know the
    /// old one.
    pub(super) async fn disarm_dropped(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        self.disarm_dropped_admission(owner, plan).await?;
        self.disarm_dropped_definitions(owner, plan).await
    }

    async fn disarm_dropped_admission(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        for kind in ADMISSION_KINDS {
            for live in self.owned(owner, &kind) {
                let Some(key) = ObjectKey::of(&live) else { continue };
                let kept = plan
                    .phases
                    .of(Phase::Admission)
                    .filter(|wanted| ObjectKey::of(wanted).as_ref() == Some(&key))
                    .any(|wanted| !calls_elsewhere(&live, wanted));
                if !kept {
                    self.delete(&live).await?;
                    self.note_disarmed(owner);
                }
            }
        }
        Ok(())
    }

    /// Ends the conversion of definitions that the plan no longer has, and halts where it could not end, later on, for
    /// one that the plan has but converts no more.
    async fn disarm_dropped_definitions(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            if converts(plan, &live) {
                continue;
            }
            let Some(wanted) = plan.definition(name(&live)) else {
                if self.stop_converting(&live, Step::Accepted).await? {
                    self.note_disarmed(owner);
                }
                continue;
            };
            // It ends when versions that the plan drops are no longer served: what would be in its way then?
            if is_converting(&live) {
                let mut expected = staged(wanted, Some(&live), Stage::Rollout);
                expected["status"] = live["status"].clone();
                self.gate_on_conversion(&expected, Step::Accepted).await?;
            }
        }
        Ok(())
    }

    /// Takes the conversion away from definitions that the plan has, but converts no more.
    pub(super) async fn disarm_conversions(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            let Some(key) = ObjectKey::of(&live) else { continue };
            if converts(plan, &live) || plan.definition(name(&live)).is_none() {
                continue;
            }
            // A watch that lags shows versions that are not served any more.
            let live = if is_converting(&live) {
                self.context.cluster.read(&key).await?.map(Arc::new)
            } else {
                Some(live)
            };
            let Some(live) = live else { continue };
            if self.stop_converting(&live, Step::Installed).await? {
                self.note_disarmed(owner);
            }
        }
        Ok(())
    }

    /// Takes the conversion of a CRD back to None, if that loses nothing. Says whether there was one.
    pub(super) async fn stop_converting(&self, live: &Value, step: Step) -> Result<bool, Halt> {
        if !is_converting(live) {
            // A crash may have left the entry of an earlier change.
            if let Some(key) = ObjectKey::of(live) {
                self.context
                    .applier
                    .release(&key, live, names::CONVERSION)
                    .await?;
            }
            return Ok(false);
        }
        self.gate_on_conversion(live, step).await?;
        self.context
            .applier
            .set_conversion(live, &json!({"strategy": "None"}))
            .await?;
        Ok(true)
    }

    /// Refuses to end a conversion without which something would be lost.
    async fn gate_on_conversion(&self, live: &Value, step: Step) -> Result<(), Halt> {
        let has_objects = self.has_objects(live).await?;
        if !may_stop_converting(live, has_objects) {
            let name = name(live);
            let message = format!(
                "{name} serves several versions and has objects: without its conversion they would be lost. Delete the objects, or set served: false on all versions but the one that is stored and rewrite the objects in it; or keep a bundle that converts {name}"
            );
            return Err(Halt::failed(step, "ConversionInUse", message));
        }
        Ok(())
    }

    /// Waits until every API server has heard of what was disarmed.
    pub(super) fn gate_on_disarmed(&self, owner: &Owner, step: Step) -> Result<(), Halt> {
        let now = self.context.clock.now();
        let left = self
            .disarmed
            .left(&owner.bundle_deployment, now, self.timing.disarmed);
        left.map_or(Ok(()), |left| {
            let message = "waiting until every API server knows what is no longer called";
            let standing = Standing::waiting(step, "Disarming", message);
            Err(Halt::Later(standing, left))
        })
    }

    pub(super) fn note_disarmed(&self, owner: &Owner) {
        self.disarmed
            .note(&owner.bundle_deployment, self.context.clock.now());
    }

    /// Whether objects of a CRD are stored. They are read in the version that they are stored in, which needs no
    /// webhook.
    async fn has_objects(&self, crd: &Value) -> Result<bool, RequestError> {
        match self.context.cluster.any(&stored_kind(crd)).await {
            // Stored, but not served: it cannot be seen, so it must be supposed.
            Err(RequestError::UnknownKind { .. }) => Ok(true),
            found => Ok(found?.is_some()),
        }
    }
}

/// The kind that a CRD defines, in the version in which its objects are stored.
pub(super) fn stored_kind(crd: &Value) -> Kind {
    Kind::of_definition(crd, storage_version(crd).unwrap_or_default())
}

/// Whether the plan converts a definition.
fn converts(plan: &Plan, live: &Value) -> bool {
    plan.conversion(name(live)).is_some()
}

fn name(definition: &Value) -> &str {
    object::text(definition, "/metadata/name").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_process_waits_as_if_it_had_disarmed_at_its_start() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let delay = Duration::from_secs(10);
        let disarmed = Disarmed::new(at(100));
        assert_eq!(disarmed.left("a", at(100), delay), Some(delay));
        assert_eq!(disarmed.left("a", at(104), delay), Some(Duration::from_secs(6)));
        assert_eq!(disarmed.left("a", at(110), delay), None);
        disarmed.note("a", at(120));
        assert_eq!(disarmed.left("a", at(121), delay), Some(Duration::from_secs(9)));
        assert_eq!(disarmed.left("b", at(121), delay), None);
        disarmed.forget("a");
        assert_eq!(disarmed.left("a", at(121), delay), None);
        assert_eq!(disarmed.left("a", at(50), Duration::ZERO), None);
    }
}
