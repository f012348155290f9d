//! Asks the installed operator whether it can be upgraded.

use windlass_api::{BundleDeployment, BundleStatus};
use windlass_bundle::BundledKind;
use windlass_cluster::{Kind, kinds};
use windlass_object::object;

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport};
use crate::install::{plan::why_not_upgradeable, status::Milestone};

/// OperatorConditions.
pub(super) const OPERATOR_CONDITION: Kind = Kind::new(
    BundledKind::OPERATOR_CONDITION.api_version,
    BundledKind::OPERATOR_CONDITION.kind,
);

/// What defines them.
pub(super) const DEFINITION: &str = "operatorconditions.operators.coreos.com";

impl BundleReconciler {
    /// Rejects an upgrade while the installed operator reports that it cannot be upgraded. A started upgrade
    /// continues, and a return to an earlier revision is not checked.
    pub(super) async fn check_upgradeable(
        &self,
        deployment: &BundleDeployment,
        bundle: &BundleStatus,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let Some(installed) = &report.installed else {
            return Ok(());
        };
        let has_begun = report.next.as_ref().is_some_and(|next| next.revision.is_some());
        let (name, namespace) = (&installed.bundle.name, &deployment.spec.namespace);
        if report.goes_back || has_begun || bundle.name == *name || !self.serves_operator_conditions() {
            return Ok(());
        }
        let key = OPERATOR_CONDITION.object(Some(namespace), name);
        let said = self.context.cluster.read(&key).await?;
        let Some(why) = said.as_ref().and_then(why_not_upgradeable) else {
            return Ok(());
        };
        let message = format!(
            "{name} reports that it cannot be upgraded now ({why}). The upgrade to {} resumes automatically once it can; to upgrade anyway, add Upgradeable with status True to spec.overrides: kubectl edit operatorcondition {name} -n \
             {namespace}",
            bundle.name
        );
        Err(Halt::failed(Milestone::Accepted, "NotUpgradeable", message))
    }

    /// Whether operators can say anything: OperatorConditions come with OLM, or with one of our manifests.
    pub(super) fn serves_operator_conditions(&self) -> bool {
        let definition = kinds::CUSTOM_RESOURCE_DEFINITION.object(None, DEFINITION);
        let Some(crd) = self.context.index.find(&definition) else {
            return false;
        };
        let (_, version) = object::group_and_version(BundledKind::OPERATOR_CONDITION.api_version);
        let is_established = object::items(&crd, "/status/conditions").iter().any(|condition| {
            object::text(condition, "/type") == Some("Established")
                && object::text(condition, "/status") == Some("True")
        });
        is_established && windlass_crd::version(&crd, version).is_some_and(windlass_crd::is_served)
    }
}
