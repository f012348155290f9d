//! How OLM has installed an operator, as far as it is not in the bundle.

use serde_json::{Map, Value};
use windlass_object::object;

use super::observation::OlmObservation;

/// What a BundleDeployment has to say so that the operator runs as under OLM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OlmOperator {
    /// The ClusterServiceVersion. A bundle with another one is an upgrade at the same time.
    pub csv: String,
    /// `spec.namespace`.
    pub namespace: String,
    /// `spec.watchNamespaces`: none of them are all.
    pub watch_namespaces: Vec<String>,
    /// `spec.config`: what the Subscription says.
    pub config: Map<String, Value>,
    /// `spec.serviceAccountName`: what the OperatorGroup says.
    pub service_account: Option<String>,
}

// === impl OlmOperator ===

impl OlmOperator {
    pub(super) fn of(observation: &OlmObservation<'_>) -> Self {
        let text = |path| object::text(observation.csv, path).unwrap_or_default().to_owned();
        let targets = object::annotation(observation.csv, "olm.targetNamespaces").unwrap_or_default();
        let targets = targets.split(',').filter(|target| !target.is_empty());
        let mut subscriptions = observation.subscriptions();
        let config = subscriptions.find_map(|subscription| subscription.pointer("/spec/config")?.as_object());
        let group = observation.operator_groups.first();
        let account = group.and_then(|group| object::text(group, "/spec/serviceAccountName"));
        Self {
            csv: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            watch_namespaces: targets.map(str::to_owned).collect(),
            config: config.cloned().unwrap_or_default(),
            service_account: account.filter(|account| !account.is_empty()).map(str::to_owned),
        }
    }
}
