//! How OLM runs an operator, as far as it is not in the bundle.

use serde_json::{Value, json};
use windlass_object::object;

use super::observation::OlmObservation;

/// What a BundleDeployment has to say so that the operator runs as under OLM, beside the settings of its Subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OlmOperator {
    /// `spec.watchNamespaces`: none of them are all.
    pub watch_namespaces: Vec<String>,
    /// `spec.serviceAccountName`: what the OperatorGroup says.
    pub service_account: Option<String>,
}

// === impl OlmOperator ===

impl OlmOperator {
    /// How OLM runs what is observed.
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

    /// Has a BundleDeployment say so. What it says itself stays.
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
