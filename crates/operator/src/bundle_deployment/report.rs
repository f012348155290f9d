//! What a reconciliation found, as status and events.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use windlass_api::{
    BundleDeployment, BundleDeploymentStatus, BundleStatus, CertificateStatus, ConversionStatus,
    WebhookState, WebhookStatus,
};
use windlass_bundle::WebhookType;
use windlass_cluster::RequestError;
use windlass_crd::{storage_migration::Migration, upgrade_safety::Finding};
use windlass_object::{ObjectKey, names, object};

use super::{halt::BundleDeploymentError, reconciler::BundleReconciler};
use crate::{
    install::{
        plan::listed,
        status::{ConditionUpdate, Conditions, InstallOutcome, Milestone},
    },
    reporting::merge_patch,
};

/// The condition that says, during a removal, that nothing is sent to the webhooks any more; its time is since when.
pub(super) const DISARMED: &str = "Disarmed";

/// The reason of the condition Accepted where changes are made that break something.
pub(super) const WARNINGS: &str = "CrdUpgradeWarnings";

/// The reason of the condition Accepted where there is something else to be known.
pub(super) const NOTICES: &str = "AcceptedWithWarnings";

/// What a reconciliation found so far. It starts with what the status says, so that one that ends early forgets
/// nothing.
pub(super) struct InstallReport {
    /// The step that is under way.
    pub(super) at: Milestone,
    /// The bundle that is installed.
    pub(super) bundle: Option<BundleStatus>,
    /// The bundle that is being installed.
    pub(super) installing: Option<BundleStatus>,
    /// The conversions that are claimed.
    pub(super) conversions: Vec<ConversionStatus>,
    /// The admission webhooks.
    pub(super) webhooks: Vec<WebhookStatus>,
    /// The ServingCertificates.
    pub(super) certificates: Vec<CertificateStatus>,
    /// The CRDs whose objects are being rewritten.
    pub(super) migrations: Vec<Migration>,
    /// What changes of CustomResourceDefinitions break although they are made.
    pub(super) warnings: Vec<Finding>,
    /// What else is to be known of a bundle that is accepted.
    pub(super) notices: Vec<String>,
    /// Everything is disarmed, for the removal.
    pub(super) disarmed: bool,
}

// === impl InstallReport ===

impl InstallReport {
    pub(super) fn new(deployment: &BundleDeployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        Self {
            at: Milestone::Accepted,
            bundle: status.bundle,
            installing: status.installing,
            conversions: status.conversions,
            webhooks: status.webhooks,
            certificates: status.certificates,
            migrations: status.storage_migrations,
            warnings: Vec::new(),
            notices: Vec::new(),
            disarmed: false,
        }
    }

    /// Notes that `bundle` is to be installed.
    pub(super) fn begin(&mut self, bundle: &BundleStatus) {
        self.installing = (self.bundle.as_ref() != Some(bundle)).then(|| bundle.clone());
    }

    /// Notes that it is.
    pub(super) fn finish(&mut self) {
        if let Some(installed) = self.installing.take() {
            self.bundle = Some(installed);
        }
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

    /// Notes how far an admission webhook is.
    pub(super) fn set_webhook(&mut self, configuration: &Value, state: WebhookState) {
        let WebhookStatus {
            name, webhook_type, ..
        } = webhook_status(configuration, state);
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
    fn is_armed(&self) -> bool {
        let conversions = self.conversions.iter().map(|conversion| conversion.state);
        let webhooks = self.webhooks.iter().map(|webhook| webhook.state);
        conversions
            .chain(webhooks)
            .all(|state| state == WebhookState::Armed)
    }
}

/// How a webhook configuration is listed. Two of different types may have one name.
pub(super) fn webhook_status(configuration: &Value, state: WebhookState) -> WebhookStatus {
    let name = object::text(configuration, "/metadata/name").unwrap_or_default();
    let webhook_type = match object::text(configuration, "/kind") {
        Some("MutatingWebhookConfiguration") => WebhookType::Mutating,
        _ => WebhookType::Validating,
    };
    WebhookStatus {
        name: name.to_owned(),
        webhook_type: webhook_type.name().to_owned(),
        state,
    }
}

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Writes the status if it differs, and an event where the reason for being ready or not has changed.
    pub(super) async fn report(
        &self,
        object: &Value,
        deployment: &BundleDeployment,
        report: &InstallReport,
        outcome: &InstallOutcome,
    ) -> Result<(), BundleDeploymentError> {
        let known = deployment.status.clone().unwrap_or_default();
        let generation = deployment.metadata.generation;
        let mut status = BundleDeploymentStatus {
            observed_generation: generation,
            bundle: report.bundle.clone(),
            installing: report.installing.clone(),
            conversions: report.conversions.clone(),
            webhooks: report.webhooks.clone(),
            certificates: report.certificates.clone(),
            storage_migrations: report.migrations.clone(),
            conditions: known.conditions.clone(),
        };
        // A Deployment that is down for a while does not disarm what is armed, and neither does a new bundle.
        let reached = report.at > Milestone::Installed || report.bundle.is_some();
        let armed = reached && report.is_armed();
        for (condition_type, mut verdict) in outcome.conditions(armed) {
            if condition_type == Milestone::Accepted.condition()
                && verdict.status == "True"
                && let Some(warning) = report.warning()
            {
                verdict = warning;
            }
            status
                .conditions
                .record(condition_type, verdict, generation, self.context.clock.now());
        }
        if report.disarmed {
            let verdict = ConditionUpdate::holds("Removing", "all webhooks are disarmed");
            status
                .conditions
                .record(DISARMED, verdict, generation, self.context.clock.now());
        }
        if status == known {
            return Ok(());
        }
        let key = ObjectKey::of(object).ok_or(RequestError::Nameless)?;
        let patch = merge_patch(&known, &status).map_err(BundleDeploymentError::Encode)?;
        self.context
            .cluster
            .patch_status(&key, &patch, names::STATUS)
            .await?;
        self.announce(object, &known, &status).await;
        Ok(())
    }

    async fn announce(
        &self,
        object: &Value,
        known: &BundleDeploymentStatus,
        status: &BundleDeploymentStatus,
    ) {
        let (events, known) = (&self.context.events, &known.conditions);
        let accepted = Milestone::Accepted.condition();
        if let Some(Condition { reason, message, .. }) = status.conditions.find(accepted)
            && [WARNINGS, NOTICES].contains(&reason.as_str())
            && known.find(accepted).is_none_or(|known| known.message != *message)
        {
            events.warn(object, "Install", reason, message).await;
        }
        let Some(Condition { reason, message, .. }) = status.conditions.find("Ready") else {
            return;
        };
        let Some(key) = ObjectKey::of(object) else { return };
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
            events.note(object, "Install", reason, message).await;
        } else {
            events.warn(object, "Install", reason, message).await;
        }
    }
}
