//! Asks the cluster for what a bundle requires.

use windlass_bundle::requirements::{RequiredApi, Requirements};
use windlass_cluster::{Kind, RequestError, kinds};
use windlass_crd::is_served;
use windlass_object::object;

use super::{halt::Halt, memory::Loaded, reconciler::BundleReconciler, report::InstallReport};
use crate::install::{
    plan::{ClusterFacts, unmet},
    status::Milestone,
};

impl BundleReconciler {
    /// Refuses a bundle whose requirements the cluster does not meet, with all of them at once. One that is installed
    /// already is only warned of: what it misses now is no reason to leave it alone. A refusal is looked at again by
    /// itself, so that the bundle is installed once the cluster has what it misses.
    pub(super) async fn check_requirements(
        &self,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        if loaded.requirements.is_empty() {
            return Ok(());
        }
        let facts = self.cluster_facts(&loaded.requirements).await?;
        let found = unmet(&loaded.requirements, &facts);
        report.notices.extend(found.unknown);
        if found.missing.is_empty() {
            return Ok(());
        }
        let installed = report.installed.as_ref().map(|installed| &installed.bundle);
        if installed == Some(&loaded.bundle) {
            report.notices.extend(found.missing);
            return Ok(());
        }
        let message = format!(
            "the cluster does not meet the requirements of the bundle: {}. The install resumes automatically once it does",
            found.missing.join("; ")
        );
        Err(Halt::failed(Milestone::Accepted, "RequirementsNotMet", message))
    }

    async fn cluster_facts(&self, requirements: &Requirements) -> Result<ClusterFacts, RequestError> {
        let cluster = &self.context.cluster;
        let index = &self.context.index;
        let mut facts = ClusterFacts::default();
        if requirements.min_kube_version.is_some() {
            facts.kube_version = cluster.kube_version().await?;
        }
        for crd in index.objects(&kinds::CUSTOM_RESOURCE_DEFINITION) {
            let text = |pointer| object::text(&crd, pointer).unwrap_or_default();
            let versions = object::items(&crd, "/spec/versions").iter();
            facts.served.extend(
                versions
                    .filter(|version| is_served(version))
                    .map(|version| RequiredApi {
                        group: text("/spec/group").to_owned(),
                        version: object::text(version, "/name").unwrap_or_default().to_owned(),
                        kind: text("/spec/names/kind").to_owned(),
                    }),
            );
        }
        for api in requirements.apis() {
            let kind = Kind::named(api.api_version(), api.kind.clone());
            if cluster.serves(&kind).await? {
                facts.served.insert(api.clone());
            } else {
                // Defined, but not established.
                facts.served.remove(api);
            }
        }
        for deployment in index.objects(&kinds::BUNDLE_DEPLOYMENT) {
            let text = |field: &str| object::text(&deployment, &format!("/status/installed/{field}"));
            if let (Some(package), Some(version)) = (text("package"), text("version")) {
                facts.packages.push((package.to_owned(), version.to_owned()));
            }
        }
        Ok(facts)
    }
}
