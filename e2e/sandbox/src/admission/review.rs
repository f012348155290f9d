//! Calls the webhooks that match a request.

use futures::future::join_all;
use serde_json::Value;

use super::{
    call::{self, AllowedReview},
    convert::Convert,
    hook::matching_hooks,
    request::ReviewRequest,
};
use crate::{StatusError, webhook::WebhookClient};

/// The result of calling the webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// The object, possibly changed.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Calls the mutating webhooks of `configurations` (MutatingWebhookConfigurations).
///
/// `normalise` is applied to the object after each change: pruning and defaulting.
///
/// # Errors
///
/// The denial of a webhook, or its failure if its `failurePolicy` is Fail.
pub async fn mutate(
    client: &WebhookClient,
    configurations: &[Value],
    request: &ReviewRequest,
    convert: &impl Convert,
    normalise: impl Fn(&mut Value),
) -> Result<Admitted, StatusError> {
    let hooks = matching_hooks(configurations, request);
    let mut admitted = Admitted {
        object: request.object.clone(),
        warnings: Vec::new(),
    };
    let mut changed_after = vec![false; hooks.len()];
    for pass in 0..2 {
        for (index, hook) in hooks.iter().enumerate() {
            let again = hook.webhook["reinvocationPolicy"] == "IfNeeded" && changed_after[index];
            if pass == 1 && !again {
                continue;
            }
            let outcome = call::call_webhook(client, hook, request, &admitted.object, convert).await?;
            let AllowedReview { patch, warnings } = outcome;
            admitted.warnings.extend(warnings);
            let Some(patch) = patch else { continue };
            let mut changed = call::apply_patch(hook, request, &admitted.object, &patch, convert).await?;
            normalise(&mut changed);
            if changed != admitted.object {
                admitted.object = changed;
                changed_after
                    .iter_mut()
                    .enumerate()
                    .for_each(|(other, flag)| *flag |= other != index);
            }
        }
    }
    Ok(admitted)
}

/// Calls the validating webhooks of `configurations` (ValidatingWebhookConfigurations) in parallel.
///
/// # Errors
///
/// The first denial, or the first failure of a webhook whose `failurePolicy` is Fail.
pub async fn validate(
    client: &WebhookClient,
    configurations: &[Value],
    request: &ReviewRequest,
    convert: &impl Convert,
) -> Result<Vec<String>, StatusError> {
    let hooks = matching_hooks(configurations, request);
    let asked = hooks
        .iter()
        .map(|hook| call::call_webhook(client, hook, request, &request.object, convert));
    let mut warnings = Vec::new();
    for outcome in join_all(asked).await {
        warnings.extend(outcome?.warnings);
    }
    Ok(warnings)
}
