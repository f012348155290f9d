//! The CustomResourceDefinition of ResourceInterpreterWebhookConfiguration.

use serde_json::{Value, json};
use windlass_object::custom_resource::{ResourceScope, crd, schema};

use super::{ResourceInterpreterWebhook, rule::ANY};
use crate::{Operation, customization::KARMADA_API_VERSION};

/// Returns the CustomResourceDefinition of ResourceInterpreterWebhookConfiguration, for clusters without
/// Karmada's own.
pub fn webhook_configuration_crd() -> Value {
    let mut webhooks = schema::<Vec<ResourceInterpreterWebhook>>();
    webhooks["description"] =
        "The webhooks. If several select an object, the one whose <object>/<webhook> sorts first is used."
            .into();
    webhooks["items"]["properties"]["rules"]["items"]["properties"]["operations"]["items"]["enum"] =
        operations();
    crd(
        KARMADA_API_VERSION,
        ResourceScope::Cluster,
        &json!({
            "kind": "ResourceInterpreterWebhookConfiguration",
            "listKind": "ResourceInterpreterWebhookConfigurationList",
            "plural": "resourceinterpreterwebhookconfigurations",
            "singular": "resourceinterpreterwebhookconfiguration",
            "categories": ["karmada-io"],
        }),
        &[],
        "ResourceInterpreterWebhookConfiguration defines webhooks that interpret objects.",
        vec![("webhooks", webhooks)],
    )
}

/// Returns all names of operations, including the one of Karmada's proposal.
fn operations() -> Value {
    let names = Operation::ALL.map(Operation::name);
    names.into_iter().chain([ANY, "InterpretHealthy"]).collect()
}
