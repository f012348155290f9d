//! Checks that admission webhooks respond: the API server calls them for a dry-run update.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use serde_json::Value;
use windlass_cluster::{Cluster, Kind, RequestError};
use windlass_doctor::DoctorCheck;
use windlass_object::{ObjectKey, names, object};

use super::{callers::Callers, examination::Examination};

/// A resource in the rules of a webhook: its group and plural.
pub(super) type ReviewedResource = (String, String);

enum DryRunResult {
    /// There is no object of the kind.
    Nothing,
    /// All webhooks responded; their verdict does not matter.
    Answered,
    Failed(RequestError),
}

/// How many dry runs are sent concurrently.
const AT_ONCE: usize = 4;

impl Examination<'_> {
    /// Makes the API server call the webhooks of custom resources.
    pub(super) async fn check_webhooks(&mut self, callers: &Callers) {
        let check = DoctorCheck::WebhookFails;
        let cluster = self.cluster;
        let kinds: BTreeMap<_, _> = callers
            .asked
            .iter()
            .filter_map(|resource| Some((resource, callers.served.get(resource)?)))
            .collect();
        let tries =
            stream::iter(kinds.into_values()).map(async |kind| (kind, dry_run_update(cluster, kind).await));
        let tried: Vec<_> = tries.buffered(AT_ONCE).collect().await;
        let mut answered = 0;
        for (kind, tried) in tried {
            let subject = format!("Webhooks of {}", kind.kind);
            match tried {
                DryRunResult::Nothing => {
                    let message =
                        "not checked whether they respond: there is no object of this kind to test with";
                    self.add([DoctorCheck::NotLookedAt.info(subject, message)]);
                }
                DryRunResult::Answered => answered += 1,
                DryRunResult::Failed(error) if error.is_failed_webhook() => {
                    let message = format!(
                        "updates of its objects fail: {error}. Check the pods behind the webhook and its caBundle"
                    );
                    self.add([check.error(subject, message)]);
                }
                DryRunResult::Failed(error) if error.is_dry_run_unsupported() => {
                    let message = format!("not checked whether they respond: {error}");
                    self.add([DoctorCheck::NotLookedAt.info(subject, message)]);
                }
                DryRunResult::Failed(error) => {
                    self.report_unchecked(&subject, kind, "list and patch", None, &error)
                        .await;
                }
            }
        }
        if answered > 0 {
            let message = format!("responded to a dry-run update of {answered} kinds");
            self.add([check.info("Webhooks of custom resources", message)]);
        }
    }
}

async fn dry_run_update(cluster: &Cluster, kind: &Kind) -> DryRunResult {
    let page = match cluster.objects(kind, None, 1, None).await {
        Ok(page) => page,
        Err(error) => return DryRunResult::Failed(error),
    };
    let Some(key) = page.objects.first().and_then(ObjectKey::from_object) else {
        return DryRunResult::Nothing;
    };
    match cluster.dry_run_update(&key, names::COMMAND).await {
        Ok(_) => DryRunResult::Answered,
        Err(error) if error.is_denied_by_webhook() => DryRunResult::Answered,
        // The object was deleted since it was listed.
        Err(error) if error.is_not_found() => DryRunResult::Nothing,
        Err(error) => DryRunResult::Failed(error),
    }
}

/// Returns the resources for whose updates a webhook configuration has rules, except wildcards.
pub(super) fn reviewed_resources(configuration: &Value) -> BTreeSet<ReviewedResource> {
    let webhooks = object::items(configuration, "/webhooks").iter();
    let rules = webhooks.flat_map(|webhook| object::items(webhook, "/rules"));
    let mut asked = BTreeSet::new();
    for rule in rules {
        let words = |field| object::items(rule, field).iter().filter_map(Value::as_str);
        if !words("/operations").any(|operation| ["*", "UPDATE"].contains(&operation)) {
            continue;
        }
        for group in words("/apiGroups") {
            asked.extend(words("/resources").map(|resource| (group.to_owned(), resource.to_owned())));
        }
    }
    asked
}

/// Returns the resource that a CustomResourceDefinition defines, and its kind in the storage version.
pub(super) fn defined_resource(definition: &Value) -> Option<(ReviewedResource, Kind)> {
    let text = |pointer| object::text(definition, pointer).map(str::to_owned);
    let mut versions = object::items(definition, "/spec/versions").iter();
    let stored = versions.find(|version| version["storage"] == Value::Bool(true))?;
    (stored["served"] == Value::Bool(true)).then_some(())?;
    let kind = Kind::from_crd(definition, object::text(stored, "/name")?);
    Some(((text("/spec/group")?, text("/spec/names/plural")?), kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn webhooks_are_tested_with_the_kinds_in_their_rules() {
        let rule = |resource: &str, operation: &str| json!({"apiGroups": ["example.com"], "resources": [resource], "operations": [operation]});
        let configuration = json!({"webhooks": [
            {"rules": [rule("widgets", "UPDATE"), rule("gadgets", "CREATE")]}, {"rules": [rule("things/status", "*")]},
        ]});
        let of = |resource: &str| ("example.com".to_owned(), resource.to_owned());
        assert_eq!(
            reviewed_resources(&configuration),
            [of("things/status"), of("widgets")].into()
        );
        let definition = |served: bool| {
            json!({"spec": {
                "group": "example.com", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": false}, {"name": "v2", "served": served, "storage": true}],
            }})
        };
        let kind = Kind::named("example.com/v2", "Widget");
        assert_eq!(defined_resource(&definition(true)), Some((of("widgets"), kind)));
        assert_eq!(defined_resource(&definition(false)), None);
    }
}
