//! What a reconciliation found, as status and events.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use windlass_api::{
    BundleDeployment, BundleDeploymentStatus, BundleRevision, BundleStatus, CatalogStatus, CertificateStatus,
    ConversionStatus, InstalledRevision, MissingRights, NextRevision, WebhookState, WebhookStatus,
};
use windlass_bundle::WebhookType;
use windlass_cluster::RequestError;
use windlass_crd::{storage_migration::Migration, upgrade_safety::Finding};
use windlass_object::{ObjectKey, names, object};

use super::{
    following::WAITING_FOR_APPROVAL, halt::BundleDeploymentError, memory::status_of,
    reconciler::BundleReconciler, record_config_maps::identity,
};
use crate::{
    announced::merge_patch,
    install::{
        plan::listed,
        status::{BundleHealth, ConditionUpdate, Conditions, InstallOutcome, Milestone, Standing},
    },
};

/// The condition that says, during a removal, that nothing is sent to the webhooks any more; its time is since when.
pub(super) const DISARMED: &str = "Disarmed";

/// The condition that says that nothing is done while an annotation says so.
pub(super) const PAUSED: &str = "Paused";

/// The reason of the condition Accepted where changes are made that break something.
pub(super) const WARNINGS: &str = "CrdUpgradeWarnings";

/// The reason of the condition Accepted where there is something else to be known.
pub(super) const NOTICES: &str = "AcceptedWithWarnings";

/// What a reconciliation found so far. It starts with what the status says, so that one that ends early forgets
/// nothing.
pub(super) struct InstallReport {
    /// The step that is under way.
    pub(super) at: Milestone,
    /// The revision that is installed.
    pub(super) installed: Option<InstalledRevision>,
    /// The revision that is wanted, where that is another one.
    pub(super) next: Option<NextRevision>,
    /// The revisions that were installed before.
    pub(super) history: Vec<BundleRevision>,
    /// What is wanted was installed already, now or before.
    pub(super) goes_back: bool,
    /// How the installed revision stands while another one is wanted.
    pub(super) standing: Option<Standing>,
    /// Whether the objects of the revision that was walked are healthy.
    pub(super) health: BundleHealth,
    /// Whether customizations say so, whose answers may change although no object does.
    pub(super) is_customized: bool,
    /// Why objects are not in the order of what they depend on.
    pub(super) order_problem: Option<String>,
    /// Why the source cannot be read, where a record stands in for it.
    pub(super) source_lost: Option<(String, String)>,
    /// The conversions that are claimed.
    pub(super) conversions: Vec<ConversionStatus>,
    /// The admission webhooks, and the other callers.
    pub(super) webhooks: Vec<WebhookStatus>,
    /// The ServingCertificates.
    pub(super) certificates: Vec<CertificateStatus>,
    /// The CRDs whose objects are being rewritten.
    pub(super) migrations: Vec<Migration>,
    /// What changes of CustomResourceDefinitions break although they are made.
    pub(super) warnings: Vec<Finding>,
    /// What else is to be known of a bundle that is accepted.
    pub(super) notices: Vec<String>,
    /// What the account of the install lacks.
    pub(super) missing_rights: Vec<MissingRights>,
    /// What the catalog that is followed has next.
    pub(super) catalog: Option<CatalogStatus>,
    /// Whether to look again at what is next as soon as the status says that the installed revision is ready.
    pub(super) follows_soon: bool,
    /// Everything is disarmed, for the removal.
    pub(super) disarmed: bool,
}

impl InstallReport {
    pub(super) fn new(deployment: &BundleDeployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        Self {
            at: Milestone::Accepted,
            installed: status.installed,
            next: status.next,
            history: status.history,
            goes_back: false,
            standing: None,
            health: BundleHealth::Healthy,
            is_customized: false,
            order_problem: None,
            source_lost: None,
            conversions: status.conversions,
            webhooks: status.webhooks,
            certificates: status.certificates,
            migrations: status.storage_migrations,
            warnings: Vec::new(),
            notices: Vec::new(),
            missing_rights: Vec::new(),
            catalog: status.catalog,
            follows_soon: false,
            disarmed: false,
        }
    }

    /// Notes which revision is wanted: the installed one, or another, which has this number once it is recorded.
    pub(super) fn want(
        &mut self,
        bundle: &BundleStatus,
        image: Option<String>,
        number: i64,
        is_recorded: bool,
    ) {
        let installed = self.installed.as_ref().map(|installed| installed.revision);
        let is_other = installed != Some(number);
        self.next = is_other.then(|| NextRevision::from_bundle(bundle, image, is_recorded.then_some(number)));
    }

    /// Notes that the wanted revision is installed: all of it is armed.
    pub(super) fn finish(&mut self) {
        let finished = self.next.take().and_then(|next| {
            Some(InstalledRevision {
                revision: next.revision?,
                bundle: BundleStatus {
                    package: next.package?,
                    name: next.name?,
                    version: next.version?,
                    digest: next.digest?,
                },
                image: next.image,
                healthy: true,
            })
        });
        self.installed = finished.or(self.installed.take());
        self.standing = None;
        self.pass_installed();
    }

    /// What the status says, or said before, about the conversion of a CRD.
    pub(super) fn conversion(&self, crd: &str) -> WebhookState {
        let known = self.conversions.iter().find(|conversion| conversion.crd == crd);
        known.map_or(WebhookState::Disarmed, |conversion| conversion.state)
    }

    /// Notes how far the conversion of a CRD is.
    pub(super) fn set_conversion(&mut self, crd: &str, state: WebhookState) {
        if let Some(known) = self.conversions.iter_mut().find(|known| known.crd == crd) {
            known.state = state;
        }
    }

    /// Notes how far a caller is.
    pub(super) fn set_webhook(&mut self, caller: &Value, state: WebhookState) {
        let WebhookStatus {
            name, webhook_type, ..
        } = webhook_status(caller, state);
        let is_it = |known: &&mut WebhookStatus| known.name == name && known.webhook_type == webhook_type;
        if let Some(known) = self.webhooks.iter_mut().find(is_it) {
            known.state = state;
        }
    }

    /// The condition Accepted where there is something to be warned of.
    fn warning(&self) -> Option<ConditionUpdate> {
        let reason = match (self.warnings.as_slice(), self.notices.as_slice()) {
            ([], []) => return None,
            ([], _) => NOTICES,
            _ => WARNINGS,
        };
        let findings = (!self.warnings.is_empty()).then(|| listed(&self.warnings));
        let messages: Vec<_> = findings.into_iter().chain(self.notices.iter().cloned()).collect();
        Some(ConditionUpdate::holds(reason, messages.join("; ")))
    }

    /// Whether API traffic goes to every webhook.
    pub(super) fn is_armed(&self) -> bool {
        let conversions = self.conversions.iter().map(|conversion| conversion.state);
        let webhooks = self.webhooks.iter().map(|webhook| webhook.state);
        conversions
            .chain(webhooks)
            .all(|state| state == WebhookState::Armed)
    }

    /// How the installed revision stands, while another one is wanted or not.
    fn standing(&self) -> Standing {
        self.standing.clone().unwrap_or_else(|| {
            // A Deployment that is down for a while does not disarm what is armed, and neither does a new bundle.
            let reached = self.at > Milestone::Installed || self.installed.is_some();
            Standing::Alone {
                armed: reached && self.is_armed(),
                health: self.health.clone(),
            }
        })
    }

    /// The condition Progressing where nothing is left to do until somebody approves what comes next.
    fn waiting_for_approval(&self, deployment: &BundleDeployment) -> Option<ConditionUpdate> {
        let message = self.approval_wanted(identity(deployment).0)?;
        Some(ConditionUpdate::fails(WAITING_FOR_APPROVAL, message))
    }

    /// What is to be said of a bundle that is accepted nevertheless.
    fn accepted(&self) -> Option<ConditionUpdate> {
        let lost = || {
            let (reason, message) = self.source_lost.as_ref()?;
            Some(ConditionUpdate::holds(reason, message))
        };
        self.warning().or_else(lost)
    }

    /// What a status says of the revision that is wanted and not installed yet, for the reason of `outcome`.
    fn waiting(&self, outcome: &InstallOutcome) -> Option<NextRevision> {
        let (reason, message) = outcome.news()?;
        let next = self.next.clone()?;
        Some(NextRevision {
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..next
        })
    }
}

/// How a caller is listed. Two of different types may have one name.
pub(super) fn webhook_status(caller: &Value, state: WebhookState) -> WebhookStatus {
    let name = object::text(caller, "/metadata/name").unwrap_or_default();
    let webhook_type = match object::text(caller, "/kind").unwrap_or_default() {
        "MutatingWebhookConfiguration" => WebhookType::Mutating.name(),
        "ValidatingWebhookConfiguration" => WebhookType::Validating.name(),
        other => other,
    };
    WebhookStatus {
        name: name.to_owned(),
        webhook_type: webhook_type.to_owned(),
        state,
    }
}

impl BundleReconciler {
    /// Writes the status as [`BundleReconciler::write_status`] does, and an event where the reason for being ready or not has
    /// changed.
    pub(super) async fn report(
        &self,
        object: &Value,
        deployment: &BundleDeployment,
        report: &InstallReport,
        outcome: &InstallOutcome,
    ) -> Result<bool, BundleDeploymentError> {
        let known = deployment.status.clone().unwrap_or_default();
        let generation = deployment.metadata.generation;
        let mut status = BundleDeploymentStatus {
            observed_generation: generation,
            installed: report.installed.clone(),
            next: report.waiting(outcome),
            history: report.history.clone(),
            catalog: report.catalog.clone(),
            conversions: report.conversions.clone(),
            webhooks: report.webhooks.clone(),
            certificates: report.certificates.clone(),
            storage_migrations: report.migrations.clone(),
            missing_rights: report.missing_rights.clone(),
            conditions: known.conditions,
        };
        status.conditions.retain(|condition| condition.type_ != PAUSED);
        for (condition_type, mut verdict) in outcome.conditions(&report.standing()) {
            if condition_type == Milestone::Accepted.condition() && verdict.status == "True" {
                verdict = report.accepted().unwrap_or(verdict);
            }
            if condition_type == "Progressing" && *outcome == InstallOutcome::Done && verdict.reason == "Done"
            {
                verdict = report.waiting_for_approval(deployment).unwrap_or(verdict);
            }
            status
                .conditions
                .record(condition_type, verdict, generation, self.context.clock.now());
        }
        let now = self.context.clock.now();
        status
            .conditions
            .record_failure(outcome.failure(), generation, now);
        if let Some(installed) = &mut status.installed {
            let statuses = [Milestone::Available, Milestone::Armed].map(|step| {
                let condition = status.conditions.find(step.condition());
                condition.map_or("Unknown", |condition| condition.status.as_str())
            });
            // Where one cannot be said, nothing was looked at.
            if statuses.iter().all(|status| *status == "True") {
                installed.healthy = true;
            } else if statuses.contains(&"False") {
                installed.healthy = false;
            }
        }
        if report.disarmed {
            let verdict = ConditionUpdate::holds("Removing", "all webhooks are disarmed");
            status
                .conditions
                .record(DISARMED, verdict, generation, self.context.clock.now());
        }
        self.write_status(object, deployment, status).await
    }

    /// Writes `status`, which was concluded from `object`, if it differs from what is known, and announces what is news in it.
    /// `false` where the status is another one meanwhile, as after a write of ours that a watch had not shown yet: what is
    /// concluded from the one before would forget what is installed.
    pub(super) async fn write_status(
        &self,
        object: &Value,
        deployment: &BundleDeployment,
        status: BundleDeploymentStatus,
    ) -> Result<bool, BundleDeploymentError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        self.reported.note(&key.name, &status);
        let seen = self.context.index.find(&key);
        let seen = seen.as_deref().unwrap_or(object);
        let known = deployment.status.clone().unwrap_or_default();
        let shown = status_of(seen).unwrap_or_else(|| known.clone());
        if status == shown {
            return Ok(true);
        }
        if shown != known {
            return Ok(false);
        }
        let patch = json!({
            "metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]},
            "status": merge_patch(&known, &status).map_err(BundleDeploymentError::Encode)?,
        });
        let cluster = &self.context.cluster;
        match cluster.patch_status_guarded(&key, &patch, names::STATUS).await {
            Ok(_) => self.announce(object, &known, &status),
            Err(error) if error.is_conflict() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn announce(&self, object: &Value, known: &BundleDeploymentStatus, status: &BundleDeploymentStatus) {
        let (events, known) = (&self.context.events, &known.conditions);
        let accepted = Milestone::Accepted.condition();
        if let Some(Condition { reason, message, .. }) = status.conditions.find(accepted)
            && [WARNINGS, NOTICES].contains(&reason.as_str())
            && known.find(accepted).is_none_or(|known| known.message != *message)
        {
            events.warn(object, "Install", reason, message);
        }
        let Some(Condition { reason, message, .. }) = status.conditions.find("Ready") else {
            return;
        };
        let Some(key) = ObjectKey::from_object(object) else {
            return;
        };
        let known = known.find("Ready").map(|known| &*known.reason);
        if !self.announced.is_news(&key, reason, known) {
            return;
        }
        tracing::info!(
            bundle_deployment = key.name,
            reason,
            message,
            "Install progressed"
        );
        let waiting = status.conditions.holds("Progressing") || status.conditions.holds("Ready");
        if waiting {
            events.note(object, "Install", reason, message);
        } else {
            events.warn(object, "Install", reason, message);
        }
    }
}
