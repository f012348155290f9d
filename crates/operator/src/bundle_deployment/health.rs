//! Whether each object of a bundle does what it is for.

use std::sync::Arc;

use interpreter::{ObjectHealth, Operation};
use serde_json::Value;
use windlass_api::{BundleDeployment, ObjectInterpretation};
use windlass_cluster::{Kind, is_whole, kinds, telemetry::chain};
use windlass_object::{
    ObjectKey, object,
    text::{Listing, shortened, tidied},
};

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport};
use crate::install::{
    plan::Plan,
    status::{Milestone, Standing},
};

/// How many objects a condition names.
const LISTED: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: "",
};

/// The longest word of somebody else's in a condition, in bytes.
const LONGEST: usize = 512;

/// The conditions by which kinds say how they are.
const CONDITIONS: [&str; 3] = ["Ready", "Available", "Healthy"];

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Waits, when everything else is done, until every object of the plan is healthy, as its interpreter sees it.
    pub(super) async fn gate_on_health(
        &self,
        deployment: &BundleDeployment,
        plan: &Plan,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        if deployment.spec.interpretation == ObjectInterpretation::Disabled {
            return Ok(());
        }
        let mut unhealthy = Vec::new();
        for desired in plan.phases.all() {
            if !self.interpretation.is_answered(Operation::InterpretHealth, desired) {
                continue;
            }
            let Some(live) = self.whole(desired).await? else {
                continue;
            };
            let words = match self.interpretation.health(live.clone()).await? {
                (ObjectHealth::Healthy, _) => continue,
                (_, Some(error)) => chain(&error),
                (_, None) => self.unhealthy(&live),
            };
            unhealthy.push(shortened(tidied(&words), LONGEST));
        }
        if unhealthy.is_empty() {
            return Ok(());
        }
        report.standing = Some(Standing::Settled);
        let message = format!("waiting for objects to be healthy: {}", LISTED.of(&unhealthy));
        Err(Halt::waiting(Milestone::Available, "Unhealthy", message))
    }

    /// An object with all that it says, also of a kind of which watches keep a part only; `None` where it is not there.
    async fn whole(&self, desired: &Value) -> Result<Option<Arc<Value>>, Halt> {
        let Some(key) = ObjectKey::of(desired) else {
            return Ok(None);
        };
        let seen = self.live(&key).await?;
        let kind = Kind::of(&key);
        // Only the schemas of definitions are left out, whose health is among their conditions.
        let is_enough = |seen: &Arc<Value>| kind == kinds::CUSTOM_RESOURCE_DEFINITION || is_whole(seen, &kind);
        if seen.as_ref().is_none_or(is_enough) {
            return Ok(seen);
        }
        Ok(self.context.cluster.read(&key).await?.map(Arc::new))
    }

    fn unhealthy(&self, live: &Value) -> String {
        let key = ObjectKey::of(live).map_or_else(String::new, |key| key.to_string());
        let by = self.interpretation.names(Operation::InterpretHealth, live);
        let reason = reason(live).map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{key} is not healthy, says {by}{reason}")
    }
}

/// What an object itself says is wrong with it.
fn reason(live: &Value) -> Option<String> {
    let conditions = CONDITIONS.iter().filter_map(|name| object::condition(live, name));
    let mut bad = conditions.filter(|condition| object::text(condition, "/status") != Some("True"));
    let condition = bad.next()?;
    let text = |pointer| object::text(condition, pointer).unwrap_or_default();
    Some(format!("{} is {}: {}", text("/type"), text("/status"), text("/message")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_reason_is_the_condition_that_does_not_hold() {
        let condition = |name: &str, status: &str| json!({"type": name, "status": status, "message": "m"});
        for (conditions, expected) in [
            (json!([]), None),
            (json!([condition("Ready", "True")]), None),
            (json!([condition("Synced", "False")]), None),
            (
                json!([condition("Available", "Unknown"), condition("Ready", "True")]),
                Some("Available is Unknown: m"),
            ),
        ] {
            let live = json!({"status": {"conditions": conditions}});
            assert_eq!(reason(&live).as_deref(), expected);
        }
    }
}
