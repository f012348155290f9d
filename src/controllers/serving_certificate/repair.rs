//! Giving targets back at once what somebody else took from them, whatever else is under way: a rotation dials endpoints,
//! and one that does not answer keeps it for seconds.

use std::sync::Arc;

use super::{ReconcileError, Reconciler};
use crate::{
    controllers::worker::Next,
    domain::{object::ObjectKey, rotation},
};

// === impl Reconciler ===

impl Reconciler {
    /// Repairs what may be repaired now. All else, obstacles and refusals too, is for a reconciliation to see and to say.
    pub(super) async fn repair(self: Arc<Self>, key: ObjectKey) -> Result<Next, ReconcileError> {
        let Some(wanted) = self.wanted(&key)? else {
            return Ok(Next::Change);
        };
        let timing = wanted.timing(&self.timing);
        let Ok(mut scene) = self.glance(&wanted, &timing).await? else {
            return Ok(Next::Change);
        };
        let steps = rotation::repairs(&scene.observation, &timing);
        self.execute(&wanted, &mut scene, &steps, &timing).await?;
        let contested = scene.observation.targets.iter();
        let wait = contested
            .filter_map(|target| target.contested.as_ref()?.wait)
            .min();
        Ok(wait.map_or(Next::Change, |wait| Next::After(wait.unsigned_abs())))
    }
}
