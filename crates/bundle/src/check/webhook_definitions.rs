//! Iterators over the webhook definitions of a bundle.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::{JsonPath, object};

use crate::parse::{Bundle, Manifest, WebhookDefinition, WebhookType};

pub(super) fn webhook_definitions(
    bundle: &Bundle,
) -> impl Iterator<Item = (JsonPath, WebhookDefinition<'_>)> {
    let list = JsonPath::from_fields("spec.webhookdefinitions");
    let webhooks = bundle.csv().webhooks().enumerate();
    webhooks.map(move |(index, webhook)| (list.item(index), webhook))
}

pub(super) fn converted(bundle: &Bundle) -> BTreeSet<&str> {
    conversion_webhooks(bundle)
        .flat_map(|(_, webhook)| webhook.conversion_crds())
        .collect()
}

pub(super) fn conversion_webhooks(
    bundle: &Bundle,
) -> impl Iterator<Item = (JsonPath, WebhookDefinition<'_>)> {
    webhook_definitions(bundle).filter(|(_, webhook)| webhook.webhook_type() == Some(WebhookType::Conversion))
}

pub(super) fn versions(crd: &Manifest) -> impl Iterator<Item = (JsonPath, &Value)> {
    let list = JsonPath::from_fields("spec.versions");
    let versions = object::items(&crd.object, "/spec/versions").iter().enumerate();
    versions.map(move |(index, version)| (list.item(index), version))
}
