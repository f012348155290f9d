//! Leaves out of a plan what cannot be there yet.

use std::sync::Arc;

use windlass_cluster::{Kind, RequestError, kinds};
use windlass_object::object;

use super::{
    memory::Loaded, operator_condition::OPERATOR_CONDITION, reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::install::plan::{Absences, Plan, optional_kinds, versions_of, watched_namespaces, without};

impl BundleReconciler {
    /// What was loaded, without objects of kinds of monitoring, consoles and so on that the cluster does not serve, and without roles in
    /// watched namespaces that do not exist. What is left out is said in the report, and comes when it can.
    pub(super) async fn without_absent(
        &self,
        loaded: Arc<Loaded>,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, RequestError> {
        let (possible, notices) = self.possible(loaded).await?;
        report.notices.extend(notices);
        Ok(possible)
    }

    /// What was loaded, without what cannot be there yet, and what to say of that.
    pub(super) async fn possible(
        &self,
        loaded: Arc<Loaded>,
    ) -> Result<(Arc<Loaded>, Vec<String>), RequestError> {
        let absences = self.absences(&loaded.plan).await?;
        let Some((plan, notices)) = without(&loaded.plan, &absences) else {
            return Ok((loaded, Vec::new()));
        };
        let pruned = Loaded {
            plan,
            ..Loaded::clone(&loaded)
        };
        Ok((Arc::new(pruned), notices))
    }

    async fn absences(&self, plan: &Plan) -> Result<Absences, RequestError> {
        let mut absences = Absences::default();
        for (api_version, kind) in optional_kinds(plan) {
            match self.served_version(&api_version, &kind).await? {
                None => _ = absences.kinds.insert((api_version, kind)),
                Some(version) if version != api_version => {
                    absences.versions.insert((api_version, kind), version);
                }
                Some(_) => {}
            }
        }
        for name in watched_namespaces(plan) {
            let live = self.live(&kinds::NAMESPACE.object(None, &name)).await?;
            if live.is_none_or(|live| object::is_terminating(&live)) {
                absences.namespaces.insert(name);
            }
        }
        Ok(absences)
    }

    /// The `apiVersion` in which a kind is served, if it is.
    async fn served_version(&self, api_version: &str, kind: &str) -> Result<Option<String>, RequestError> {
        for version in versions_of(api_version, kind) {
            let asked = Kind::named(version.clone(), kind.to_owned());
            // Every plan has one, and what defines it is watched.
            let is_served = if asked == OPERATOR_CONDITION {
                self.serves_operator_conditions()
            } else {
                self.context.cluster.serves(&asked).await?
            };
            if is_served {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }
}
