//! Admission webhooks: which are called for a request, in which order, and what their answers do.
//!
//! Mutating webhooks are called one after the other, ordered by the configuration's name and then by their place in
//! it; those with `reinvocationPolicy: IfNeeded` once more if a later one changed the object. Then all validating
//! ones are called side by side.

mod call;
mod conditions;
mod matching;
mod selector;

use futures::future::join_all;
use serde_json::Value;

use crate::{StatusError, webhook::WebhookClient};

pub use conditions::problems as condition_problems;
pub use matching::{RequestedResource, ServedVersion};
pub use selector::matches as selector_matches;

use self::call::AllowedReview;

/// A request that webhooks are asked about.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// What is requested, as the client did.
    pub resource: RequestedResource,
    /// The kind that goes with it.
    pub kind: String,
    /// The object's name; may be empty on create.
    pub name: String,
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Labels of that namespace; for a Namespace, its own.
    pub namespace_labels: Value,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
    /// `userInfo`.
    pub user: Value,
    /// The object as it would be stored; null for deletes.
    pub object: Value,
    /// The object as it is stored; null for creates.
    pub old_object: Value,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// `options`, for example a `CreateOptions`.
    pub options: Value,
    /// Other versions in which the same resource is served: for `matchPolicy: Equivalent`.
    pub equivalents: Vec<ServedVersion>,
}

/// Converts an object to another version, for webhooks that match that version.
pub trait Convert: Sync {
    /// `object` in `api_version`.
    fn convert(
        &self,
        object: &Value,
        api_version: &str,
    ) -> impl Future<Output = Result<Value, StatusError>> + Send;
}

/// What the webhooks made of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// The object, perhaps changed.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// One webhook of a configuration.
struct Hook<'a> {
    webhook: &'a Value,
    version: ServedVersion,
}

/// Asks the mutating webhooks of `configurations` (MutatingWebhookConfigurations).
///
/// `normalise` is applied to the object after each change: pruning and defaulting.
///
/// # Errors
///
/// The denial of a webhook, or its failure where its `failurePolicy` is Fail.
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
            let outcome = call::ask(client, hook, request, &admitted.object, convert).await?;
            let AllowedReview { patch, warnings } = outcome;
            admitted.warnings.extend(warnings);
            let Some(patch) = patch else { continue };
            let mut changed = call::patched(hook, request, &admitted.object, &patch, convert).await?;
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

/// Asks the validating webhooks of `configurations` (ValidatingWebhookConfigurations), side by side.
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
        .map(|hook| call::ask(client, hook, request, &request.object, convert));
    let mut warnings = Vec::new();
    for outcome in join_all(asked).await {
        warnings.extend(outcome?.warnings);
    }
    Ok(warnings)
}

/// The webhooks that a request concerns, in the order in which they are called.
fn matching_hooks<'a>(configurations: &'a [Value], request: &ReviewRequest) -> Vec<Hook<'a>> {
    // Webhooks cannot keep an administrator from removing webhooks.
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
            Some(Hook {
                webhook,
                version: matching::version(webhook, request)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
