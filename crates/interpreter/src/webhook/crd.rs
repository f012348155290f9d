//! The CustomResourceDefinition of ResourceInterpreterWebhookConfiguration.

use serde_json::{Value, json};
use windlass_object::custom_resource::{ResourceScope, crd, schema};

use super::{ResourceInterpreterWebhook, rule::ANY};
use crate::{Operation, customization::KARMADA_API_VERSION};

/// The CustomResourceDefinition of ResourceInterpreterWebhookConfiguration, where Karmada's own is not there.
pub fn webhook_configuration_crd() -> Value {
    let mut webhooks = schema::<Vec<ResourceInterpreterWebhook>>();
    webhooks["description"] =
        "The webhooks. Of several that are for the same, that counts whose <object>/<webhook> is less."
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
        "ResourceInterpreterWebhookConfiguration says which webhooks interpret objects.",
        vec![("webhooks", webhooks)],
    )
}

/// All names of operations, with the one that Karmada's proposal had.
fn operations() -> Value {
    let names = Operation::ALL.map(Operation::name);
    names.into_iter().chain([ANY, "InterpretHealthy"]).collect()
}
