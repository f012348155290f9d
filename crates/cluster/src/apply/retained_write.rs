//! Writes of objects with retained values, by the rules of [`retention`](super::retention).

use std::sync::Arc;

use serde_json::Value;
use tracing::info;
use windlass_object::{ObjectKey, names, object};

use super::{
    applier::{Applier, ApplyError, Outcome},
    body::apply_body,
    difference::{body_hash, covers},
    field_owner::FieldOwner,
    memory::{Memory, without_bookkeeping},
    retention::{ApplyGoal, RetainedGoal},
};
use crate::telemetry::chain;

/// How often to compute and send an object that other clients write at the same time, before the
/// reconciliation fails.
const TRIES: usize = 5;

impl Applier {
    /// Returns the source of retained values for objects such as `desired`.
    pub(super) fn answered_by(&self, desired: &Value) -> Option<String> {
        self.retention.as_ref()?.answered_by(desired)
    }

    /// Computes the goal of `live`, with the values that `by` retains.
    pub(super) async fn goal(
        &self,
        key: &ObjectKey,
        desired: &Value,
        owner: &FieldOwner,
        live: &Value,
        by: Option<&str>,
    ) -> Result<ApplyGoal, ApplyError> {
        let plain = || Ok(ApplyGoal::plain(desired, owner, live));
        let (Some(retention), Some(by)) = (&self.retention, by) else {
            return plain();
        };
        let body = apply_body(desired, owner);
        let failed = |problem| ApplyError::Retention {
            object: key.clone(),
            by: by.to_owned(),
            problem,
        };
        let answer = retention.retain(&body, live).await;
        let Some(answer) = answer.map_err(|error| failed(chain(&*error)))? else {
            return plain();
        };
        ApplyGoal::answered(body, answer, desired, owner, live).map_err(|error| failed(error.to_string()))
    }

    /// Reports whether `live` has reached its goal.
    pub(super) fn is_reached(&self, key: &ObjectKey, goal: &ApplyGoal, live: &Value) -> bool {
        let mut goals = self.retained.lock();
        match &goal.retained {
            Some(retained) => {
                goals.insert(key.clone(), retained.clone());
                drop(goals);
                self.holds_retained(key, retained, live)
            }
            None => {
                goals.remove(key);
                drop(goals);
                self.holds(key, &goal.body, live)
            }
        }
    }

    /// Returns the last goal of an object, if it was for the same `desired`.
    pub(super) fn last_retained_goal(
        &self,
        key: &ObjectKey,
        desired: &Value,
        owner: &FieldOwner,
    ) -> Option<Arc<RetainedGoal>> {
        let known = self.retained.lock().get(key).cloned();
        known.filter(|goal| goal.is_for(&apply_body(desired, owner)))
    }

    pub(super) fn holds_retained(&self, key: &ObjectKey, goal: &RetainedGoal, live: &Value) -> bool {
        if !goal.was_applied(live) {
            return false;
        }
        let hash = body_hash(&goal.expected);
        let mut memory = self.memory.lock();
        let remembered = memory.entry(key.clone()).or_default();
        if remembered.hash != hash {
            *remembered = Memory {
                hash,
                ..Memory::default()
            };
        }
        // An unchanged generation does not show which values to retain.
        remembered.verified = None;
        covers(&goal.expected, &goal.masked(live), remembered.made.as_ref())
    }

    /// Writes an object with retained values. Reads it first, since only the API server has its managed
    /// fields.
    pub(super) async fn write_retained(
        &self,
        key: &ObjectKey,
        desired: &Value,
        owner: &FieldOwner,
        by: Option<&str>,
    ) -> Result<Outcome, ApplyError> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let live = self.reread(key).await?;
            let live = self.take_over(key, live, owner).await?;
            let goal = self.goal(key, desired, owner, &live, by).await?;
            if self.is_reached(key, &goal, &live) {
                return Ok(Outcome::Unchanged);
            }
            let Some(retained) = &goal.retained else {
                return self.write(key, &goal.body, &live, owner).await;
            };
            let sent = guarded_body(retained, &live);
            match self.writer(key, owner).apply(&sent, names::INSTALL, true).await {
                Err(error) if error.is_conflict() && is_guarded(&sent) && tries > 0 => {}
                Err(error) if error.is_conflict() || error.is_invalid() => {
                    return Err(self.conflict_error(key, owner, error).await);
                }
                made => {
                    let made = made?;
                    self.remember_retained(key, desired, owner, &made, by).await;
                    info!(object = %key, by, "Applied with retained values");
                    return Ok(Outcome::Written);
                }
            }
        }
    }

    /// Returns the body for a dry run of `desired`.
    pub(super) async fn dry_run_body(
        &self,
        desired: &Value,
        owner: &FieldOwner,
    ) -> Result<Value, ApplyError> {
        let by = self.answered_by(desired);
        if let (Some(by), Some(key)) = (&by, ObjectKey::from_object(desired))
            && let Some(live) = self.cluster.read(&key).await?
            && let Some(retained) = self.goal(&key, desired, owner, &live, Some(by)).await?.retained
        {
            return Ok(guarded_body(&retained, &live));
        }
        Ok(apply_body(desired, owner))
    }

    async fn remember_retained(
        &self,
        key: &ObjectKey,
        desired: &Value,
        owner: &FieldOwner,
        made: &Value,
        by: Option<&str>,
    ) {
        // The written object may have other retained values.
        match self.goal(key, desired, owner, made, by).await {
            Ok(ApplyGoal {
                retained: Some(goal), ..
            }) => {
                let hidden = goal.masked(made);
                let plain = covers(&goal.expected, &hidden, None);
                let memory = Memory {
                    hash: body_hash(&goal.expected),
                    made: (!plain).then(|| without_bookkeeping(&hidden)),
                    verified: None,
                };
                self.memory.lock().insert(key.clone(), memory);
                self.retained.lock().insert(key.clone(), goal);
            }
            Ok(goal) => {
                self.remember(key, &goal.body, made);
                self.retained.lock().remove(key);
            }
            // The next comparison reports the error.
            Err(_) => self.forget_memory(key),
        }
    }
}

/// Returns the body to apply to `live`, guarded by its uid and, if needed, its resourceVersion.
fn guarded_body(goal: &RetainedGoal, live: &Value) -> Value {
    let sent = goal.sent(live);
    let mut body = sent.body;
    let guards = [("uid", true), ("resourceVersion", sent.guarded)];
    for (field, _) in guards.into_iter().filter(|(_, is_needed)| *is_needed) {
        if let Some(guard) = live["metadata"].get(field) {
            body["metadata"][field] = guard.clone();
        }
    }
    body
}

fn is_guarded(body: &Value) -> bool {
    object::text(body, "/metadata/resourceVersion").is_some()
}
