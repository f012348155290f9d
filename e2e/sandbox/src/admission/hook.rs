//! Selects the webhooks that match a request.

use serde_json::Value;

use super::{
    matching,
    request::{ReviewRequest, ServedVersion},
};

/// One webhook of a configuration.
pub(super) struct WebhookMatch<'a> {
    pub(super) webhook: &'a Value,
    pub(super) version: ServedVersion,
}

/// Returns the webhooks that match a request, in calling order.
pub(super) fn matching_hooks<'a>(
    configurations: &'a [Value],
    request: &ReviewRequest,
) -> Vec<WebhookMatch<'a>> {
    // A webhook cannot prevent an administrator from removing webhooks.
    let own_kinds = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    if request.resource.group == "admissionregistration.k8s.io"
        && own_kinds.contains(&request.resource.resource.as_str())
    {
        return Vec::new();
    }
    let mut ordered: Vec<&Value> = configurations.iter().collect();
    ordered.sort_by_key(|configuration| configuration["metadata"]["name"].as_str().unwrap_or_default());
    ordered
        .into_iter()
        .flat_map(|configuration| configuration["webhooks"].as_array().into_iter().flatten())
        .filter_map(|webhook| {
            Some(WebhookMatch {
                webhook,
                version: matching::matched_version(webhook, request)?,
            })
        })
        .collect()
}
