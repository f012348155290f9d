//! How the installed revision stands while another one is under way.

use serde_json::Value;
use windlass_api::{BundleDeployment, WebhookState};
use windlass_object::{ObjectKey, object};

use super::{reconciler::BundleReconciler, report::InstallReport};
use crate::install::{
    plan::{Phase, Plan},
    status::{BundleHealth, Standing},
};

/// What is said of the installed revision where asking about its objects failed.
const UNASKED: &str = "waiting to call its interpreters again after an interruption";

impl BundleReconciler {
    /// How the installed revision stands, as the watches see it, if another one is under way beside it.
    pub(super) async fn standing_beside(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
    ) -> Option<Standing> {
        report.next.as_ref()?;
        let installed = self.installed_record(deployment, report).await.ok()??;
        let owner = self.owner(deployment);
        let health = match self.health(deployment, &owner, &installed.plan, false).await {
            Ok(of) => of.health,
            // Nobody has looked at its objects.
            Err(_) => BundleHealth::Healthy.and_unknown(UNASKED.to_owned()),
        };
        let deployments = installed.plan.phases.of(Phase::Deployments);
        let live = |desired: &Value| {
            let key = ObjectKey::from_object(desired)?;
            Some((self.context.index.find(&key), key))
        };
        let down: Vec<_> = deployments
            .filter_map(live)
            .filter(|(live, _)| !live.as_deref().is_some_and(is_available))
            .map(|(_, key)| format!("{key} has no available replica"))
            .collect();
        Some(Standing::Beside {
            available: if down.is_empty() {
                Ok(())
            } else {
                Err(down.join("; "))
            },
            health,
            armed: self.is_still_armed(&installed.plan, report),
        })
    }

    /// Whether what a plan has armed is in place. The report does not list what the next revision drops.
    fn is_still_armed(&self, plan: &Plan, report: &InstallReport) -> bool {
        let conversions = plan.conversions.iter().all(|conversion| {
            let listed = report
                .conversions
                .iter()
                .find(|listed| listed.crd == conversion.crd);
            listed.is_none_or(|listed| listed.state == WebhookState::Armed)
        });
        let webhooks = plan.phases.of(Phase::Callers).all(|configuration| {
            ObjectKey::from_object(configuration).is_some_and(|key| self.context.index.find(&key).is_some())
        });
        conversions && webhooks
    }
}

/// Whether a Deployment has a replica that is available, or is to have none.
fn is_available(deployment: &Value) -> bool {
    let count = |pointer| deployment.pointer(pointer).and_then(Value::as_i64);
    !object::is_terminating(deployment)
        && (count("/status/availableReplicas").unwrap_or(0) > 0 || count("/spec/replicas") == Some(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_available_replica_is_enough() {
        for (deployment, expected) in [
            (
                json!({"spec": {"replicas": 2}, "status": {"availableReplicas": 1}}),
                true,
            ),
            (json!({"spec": {"replicas": 2}, "status": {}}), false),
            (json!({"spec": {"replicas": 0}}), true),
            (
                json!({"metadata": {"deletionTimestamp": "now"}, "status": {"availableReplicas": 1}}),
                false,
            ),
        ] {
            assert_eq!(is_available(&deployment), expected, "{deployment}");
        }
    }
}
