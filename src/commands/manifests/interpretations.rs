//! The CustomResourceDefinitions of customizations of how objects are interpreted, and of webhooks that interpret them.

use interpreter::{
    customization::{self, KARMADA_API_VERSION},
    webhook::webhook_configuration_crd,
};
use serde_json::Value;
use windlass_object::object;

use super::document::Document;

const OWN: &str = "Optional: by ResourceInterpretations, users say when objects of bundles are healthy, what of them is kept and what they
depend on. The operator watches them as soon as this file is applied.";

const KARMADAS: &str = "Optional: ResourceInterpreterCustomizations say the same as ResourceInterpretations. They come with Karmada;
apply this file only where Karmada is not installed.";

const WEBHOOKS: &str = "Optional: ResourceInterpreterWebhookConfigurations lead to servers that say the same. They come with Karmada;
apply this file only where Karmada is not installed. Its definition has failurePolicy, too.";

/// The definition of our own kind.
pub(super) fn documents() -> Vec<Document> {
    let own = definitions().into_iter().filter(|crd| !is_karmadas(crd));
    own.map(|crd| Document::commented(OWN, crd)).collect()
}

/// The definition of Karmada's.
pub(super) fn documents_of_karmada() -> Vec<Document> {
    let karmadas = definitions().into_iter().filter(is_karmadas);
    karmadas.map(|crd| Document::commented(KARMADAS, crd)).collect()
}

/// The definition of configurations of webhooks.
pub(super) fn documents_of_webhooks() -> Vec<Document> {
    vec![Document::commented(WEBHOOKS, webhook_configuration_crd())]
}

/// Both definitions of customizations.
pub(super) fn definitions() -> Vec<Value> {
    customization::crds()
}

fn is_karmadas(crd: &Value) -> bool {
    object::text(crd, "/spec/group") == Some(object::group_and_version(KARMADA_API_VERSION).0)
}
