//! The settings by which OLM runs an operator that are not in the bundle.

use serde_json::{Value, json};
use windlass_object::object;

use super::observation::OlmObservation;

/// Settings of a BundleDeployment that correspond to OLM's, except those of the Subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OlmOperator {
    /// `spec.watchNamespaces`; empty for all namespaces.
    pub watch_namespaces: Vec<String>,
    /// `spec.serviceAccountName`, from the OperatorGroup.
    pub service_account: Option<String>,
}

impl OlmOperator {
    /// Reads the settings from the ClusterServiceVersion and the OperatorGroup.
    pub fn from_observation(observation: &OlmObservation<'_>) -> Self {
        let targets = object::annotation(observation.csv, "olm.targetNamespaces").unwrap_or_default();
        let targets = targets.split(',').filter(|target| !target.is_empty());
        let group = observation.operator_groups.first();
        let account = group.and_then(|group| object::text(group, "/spec/serviceAccountName"));
        Self {
            watch_namespaces: targets.map(str::to_owned).collect(),
            service_account: account.filter(|account| !account.is_empty()).map(str::to_owned),
        }
    }

    /// Adds the settings to a BundleDeployment. Its own settings win.
    pub fn complete(&self, deployment: &mut Value) {
        let spec = &mut deployment["spec"];
        if !self.watch_namespaces.is_empty() && spec.get("watchNamespaces").is_none() {
            spec["watchNamespaces"] = json!(self.watch_namespaces);
        }
        if let Some(account) = &self.service_account
            && spec.get("serviceAccountName").is_none()
        {
            spec["serviceAccountName"] = json!(account);
        }
    }
}
