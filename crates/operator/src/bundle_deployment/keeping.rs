//! The installed revision is kept whatever becomes of the next one.

use std::{sync::Arc, time::Duration};

use tracing::warn;
use windlass_api::BundleDeployment;
use windlass_cluster::{apply::FieldOwner, lease::NotLeading, telemetry::chain};
use windlass_crd::upgrade_safety::is_refused;

use super::{
    acceptance::list_webhooks, halt::Halt, memory::Loaded, reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::install::status::{InstallOutcome, Standing};

impl BundleReconciler {
    /// Maintains the installed revision, armed as before, while the next one is rejected. If that would undo
    /// a started rollout, only missing objects are restored. Returns the rejection, with the time of the next
    /// attempt.
    pub(super) async fn keep_installed(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        refused: Halt,
        report: &mut InstallReport,
    ) -> Halt {
        let (outcome, mut after) = match refused {
            Halt::Gate(outcome) => (outcome, None),
            Halt::Later(outcome, after) => (outcome, Some(after)),
            Halt::Error(error) => return Halt::Error(error),
        };
        let mut kept = InstallReport::new(deployment);
        kept.next = None;
        kept.goes_back = true;
        let installed = match self
            .installed_to_keep(deployment, owner, &outcome, after, &kept)
            .await
        {
            Ok(Some(installed)) => installed,
            Ok(None) => {
                if let Err(halt) = self.keep_beside_begun(deployment, owner, &kept).await {
                    return halt;
                }
                report.standing = self.standing_beside(deployment, report).await;
                return match after {
                    None => self.migrate_meanwhile(owner, outcome, report).await,
                    Some(after) => Halt::Later(outcome, after),
                };
            }
            Err(Halt::Later(_, soon)) => return again(outcome, Some(soon)),
            Err(halt) => return halt,
        };
        list_webhooks(&installed.plan, &mut kept);
        let walked = match self.keep(deployment, owner, &installed, &mut kept).await {
            Err(Halt::Error(error)) => Err(self.unblock(owner, error).await),
            walked => walked,
        };
        let noted = self
            .note_health(deployment, owner, &installed.plan, &walked, &mut kept)
            .await;
        if let Err(error) = noted {
            return error;
        }
        let walked = match walked {
            Ok(_) => InstallOutcome::Done,
            Err(Halt::Gate(outcome)) => outcome,
            Err(Halt::Later(outcome, soon)) => {
                after = Some(after.map_or(soon, |after| after.min(soon)));
                outcome
            }
            // Others write now.
            Err(Halt::Error(error)) if NotLeading::is_cause_of(&error) => return Halt::Error(error),
            Err(Halt::Error(error)) => {
                warn!(bundle_deployment = owner.bundle_deployment, %error, "Cannot maintain the installed revision");
                InstallOutcome::waiting(kept.at, "Retrying", chain(&error))
            }
        };
        report.take_kept(kept, walked);
        again(outcome, after)
    }

    /// The installed revision, if it can be walked: it would not undo what another one has begun and may go on with, and
    /// nothing that is stored would be lost.
    async fn installed_to_keep(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        outcome: &InstallOutcome,
        after: Option<Duration>,
        kept: &InstallReport,
    ) -> Result<Option<Arc<Loaded>>, Halt> {
        let Some(number) = kept.installed.as_ref().map(|installed| installed.revision) else {
            return Ok(None);
        };
        let Some(installed) = self.installed_plan(deployment, kept).await? else {
            return Ok(None);
        };
        let ledger = self.ledger(deployment).await?;
        let has_begun = ledger.newest().is_some_and(|newest| newest.number > number);
        if has_begun {
            let may_go_on = after.is_some()
                || matches!(outcome, InstallOutcome::Waiting { reason, .. } if reason != "SourceMissing");
            if may_go_on || self.stored_and_dropped(&installed.plan).await?.is_some() {
                return Ok(None);
            }
        }
        let changes = self.crd_changes(owner, &installed).await?;
        let is_safe = if changes.is_empty() {
            true
        } else if has_begun {
            // It has changed CRDs already, and objects may rely on that: going back is an upgrade of its own.
            false
        } else {
            let findings = self.crd_upgrade_findings(owner, deployment, &installed, kept);
            !is_refused(&findings.await?)
        };
        Ok(is_safe.then_some(installed))
    }
}

impl InstallReport {
    /// Takes over what was found of the installed revision, which was walked while another one is refused. What that one
    /// claims stays in the list, for others to see.
    fn take_kept(&mut self, kept: Self, outcome: InstallOutcome) {
        let armed = kept.is_armed();
        let mut claimed = std::mem::replace(&mut self.conversions, kept.conversions);
        claimed.retain(|claim| self.conversions.iter().all(|known| known.crd != claim.crd));
        self.conversions.extend(claimed);
        self.webhooks = kept.webhooks;
        self.certificates = kept.certificates;
        self.migrations = kept.migrations;
        self.installed = kept.installed;
        self.history = kept.history;
        self.is_customized |= kept.is_customized;
        self.standing = Some(Standing::Kept {
            outcome,
            armed,
            health: kept.health,
        });
    }
}

/// A gate, to be looked at again `after` a time of its own.
fn again(outcome: InstallOutcome, after: Option<Duration>) -> Halt {
    match after {
        Some(after) => Halt::Later(outcome, after),
        None => Halt::Gate(outcome),
    }
}
