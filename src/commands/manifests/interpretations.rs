//! The CustomResourceDefinitions of resource interpretation.

use interpreter::{
    customization::{self, KARMADA_API_VERSION},
    webhook::webhook_configuration_crd,
};
use serde_json::Value;
use windlass_object::object;

use super::document::Document;

const OWN: &str = "Optional: ResourceInterpretations define when objects of bundles are healthy, which of their fields are kept and what they
depend on. The operator watches them as soon as this file is applied.";

const KARMADAS: &str = "Optional: ResourceInterpreterCustomizations have the same purpose as ResourceInterpretations. They are part of Karmada;
apply this file only where Karmada is not installed.";

const WEBHOOKS: &str = "Optional: ResourceInterpreterWebhookConfigurations register servers for the same purpose. They are part of Karmada;
apply this file only where Karmada is not installed. Its definition has failurePolicy too.";

/// Returns the CRD of ResourceInterpretations.
pub(super) fn documents() -> Vec<Document> {
    let own = definitions().into_iter().filter(|crd| !is_from_karmada(crd));
    own.map(|crd| Document::commented(OWN, crd)).collect()
}

/// Returns the CRD of ResourceInterpreterCustomizations.
pub(super) fn karmada_documents() -> Vec<Document> {
    let karmadas = definitions().into_iter().filter(is_from_karmada);
    karmadas.map(|crd| Document::commented(KARMADAS, crd)).collect()
}

/// Returns the CRD of ResourceInterpreterWebhookConfigurations.
pub(super) fn webhook_configuration_documents() -> Vec<Document> {
    vec![Document::commented(WEBHOOKS, webhook_configuration_crd())]
}

/// Returns both CRDs of customizations.
pub(super) fn definitions() -> Vec<Value> {
    customization::crds()
}

fn is_from_karmada(crd: &Value) -> bool {
    object::text(crd, "/spec/group") == Some(object::group_and_version(KARMADA_API_VERSION).0)
}
