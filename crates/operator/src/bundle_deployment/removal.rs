//! Removal, in order: see whether anything is in the way, disarm, wait until every API server has heard of it, then everything else in reverse. CRDs stay
//! with their objects unless they are to be deleted, and so does the namespace.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tracing::info;
use windlass_api::{BundleDeployment, ConversionManager, DeletionPolicy, WebhookState};
use windlass_cluster::{apply::FieldOwner, kinds, worker::Action};
use windlass_object::{ObjectKey, object};

use super::{
    finalizer,
    halt::Halt,
    namespace::{Afterwards, Namespace},
    reconciler::BundleReconciler,
    report::{DISARMED, InstallReport},
};
use crate::install::status::{Conditions, InstallOutcome, Milestone};

/// The shortest pause before a watch is looked at again that has not shown what was written last.
const BREATH: Duration = Duration::from_millis(50);

impl BundleReconciler {
    /// Executes a removal step by step, and stops at the first step that has to wait. Claims are kept until
    /// the end, so that no other BundleDeployment starts earlier.
    pub(super) async fn remove(
        &self,
        object: &Value,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        let name = object::text(object, "/metadata/name").unwrap_or_default();
        let owner = self.owner(deployment);
        report.at = Milestone::Armed;
        self.dismiss_canaries(&owner, &[]).await?;
        let namespace = &deployment.spec.namespace;
        let state = self.namespace(namespace).await?;
        if state == Namespace::Present {
            self.gate_on_other_callers(deployment, &owner, |_| true)?;
        } else {
            let afterwards = Afterwards::Removed(deployment.spec.deletion_policy);
            self.let_go(&owner, namespace, state, afterwards).await?;
        }
        self.gate_on_leaving(&owner, deployment, report).await?;
        self.gate_on_rights_to_remove(&owner, deployment, report).await?;
        report.migrations.clear();
        self.disarm_callers(&owner).await?;
        for webhook in &mut report.webhooks {
            webhook.state = WebhookState::Disarmed;
        }
        match deployment.spec.deletion_policy {
            // What the operator has armed itself is not ours to take away.
            DeletionPolicy::KeepCRDs if deployment.spec.conversion == ConversionManager::External => {}
            DeletionPolicy::KeepCRDs | DeletionPolicy::KeepStoredVersion => {
                self.leave_crds(&owner, deployment).await?;
            }
            DeletionPolicy::DeleteCRDs => self.delete_crds(&owner, namespace).await?,
        }
        for conversion in &mut report.conversions {
            conversion.state = WebhookState::Disarmed;
        }
        let since = disarmed_since(deployment);
        report.disarmed = true;
        let delay = SignedDuration::try_from(self.timing.disarmed).unwrap_or(SignedDuration::MAX);
        let waited = since.map(|since| self.context.clock.now().duration_since(since));
        let left = delay.saturating_sub(waited.unwrap_or_default());
        if waited.is_none() || left.is_positive() {
            let message =
                "webhooks are disarmed; deleting their servers once all API servers have observed it";
            let outcome = InstallOutcome::waiting(Milestone::Armed, "Disarmed", message);
            return Err(Halt::Later(outcome, left.unsigned_abs().max(BREATH)));
        }
        self.delete_everything(&owner).await?;
        self.delete_orphans(&owner, namespace).await?;
        let kept = self.release_everything(&owner).await?;
        if !kept.is_empty() {
            let note = format!("kept with all their objects: {}", kept.join(", "));
            self.context.events.note(object, "Remove", "Kept", &note);
        }
        finalizer::remove(&self.context, object).await?;
        info!(bundle_deployment = name, "Removed");
        Ok(Action::AwaitChange)
    }

    /// Lets go of what stays: CRDs, since their objects would go with them, and the namespace. Returns their names.
    async fn release_everything(&self, owner: &FieldOwner) -> Result<Vec<String>, Halt> {
        let mut kept = Vec::new();
        for kind in [kinds::CUSTOM_RESOURCE_DEFINITION, kinds::NAMESPACE] {
            for live in self.list_owned(owner, &kind).await? {
                self.release(&live, owner).await?;
                kept.extend(ObjectKey::from_object(&live).map(|key| key.to_string()));
            }
        }
        Ok(kept)
    }
}

/// Since when everything is disarmed, as the status says.
fn disarmed_since(deployment: &BundleDeployment) -> Option<Timestamp> {
    let disarmed = deployment.status.as_ref()?.conditions.find(DISARMED)?;
    (disarmed.status == "True").then_some(disarmed.last_transition_time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use windlass_object::names;

    #[test]
    fn only_the_condition_disarmed_starts_the_clock() {
        let since = |conditions: Value| {
            disarmed_since(
                &serde_json::from_value(json!({
                    "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "metadata": {"name": "a"},
                    "spec": {"namespace": "a", "source": {}}, "status": {"conditions": conditions},
                }))
                .unwrap(),
            )
        };
        let condition = |condition_type: &str, status: &str| {
            json!([{
                "type": condition_type, "status": status, "reason": "Disarmed", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }])
        };
        let moment = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(since(condition("Disarmed", "True")), Some(moment));
        assert_eq!(since(condition("Disarmed", "False")), None);
        assert_eq!(since(condition("Armed", "False")), None);
        assert_eq!(since(json!([])), None);
    }
}
