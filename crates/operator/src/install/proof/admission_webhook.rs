//! The admission webhooks of a plan, as the API server would call them.

use std::time::Duration;

use serde_json::Value;
use windlass_object::object;

use super::admission_request::targets;
use crate::install::traffic::DEFAULT_PORT;

/// One admission webhook that calls a Service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionWebhook<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it may change objects.
    pub admission_type: AdmissionType,
    /// The name of the Service.
    pub service: &'a str,
    /// The port of the Service.
    pub port: i64,
    /// The path, with a leading slash.
    pub path: &'a str,
    /// The version of AdmissionReview that the API server sends: the first of those that it knows.
    pub review_version: &'a str,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// What it wants to be asked about.
    pub rules: &'a [Value],
}

/// What an admission webhook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionType {
    /// Refuse objects.
    Validating,
    /// Change objects, and refuse them.
    Mutating,
}

/// The default of `timeoutSeconds` (`admissionregistration.k8s.io/v1`).
const DEFAULT_TIMEOUT: u64 = 10;

/// The versions of AdmissionReview that API servers send.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

impl<'a> AdmissionWebhook<'a> {
    /// Reads a webhook of a configuration; `None` where nobody can ask it: it calls no Service, knows no version of
    /// AdmissionReview that is sent, or may do something else beside answering when it is asked for a dry run.
    fn of(webhook: &'a Value, admission_type: AdmissionType) -> Option<Self> {
        let text = |pointer| object::text(webhook, pointer);
        if has_side_effects(webhook) {
            return None;
        }
        let service = webhook.pointer("/clientConfig/service")?;
        let timeout = webhook.get("timeoutSeconds").and_then(Value::as_u64);
        Some(Self {
            name: text("/name")?,
            admission_type,
            service: object::text(service, "/name")?,
            port: service
                .get("port")
                .and_then(Value::as_i64)
                .unwrap_or(DEFAULT_PORT),
            path: object::text(service, "/path").unwrap_or("/"),
            review_version: object::items(webhook, "/admissionReviewVersions")
                .iter()
                .filter_map(Value::as_str)
                .find(|version| REVIEW_VERSIONS.contains(version))?,
            timeout: Duration::from_secs(timeout.unwrap_or(DEFAULT_TIMEOUT)),
            rules: object::items(webhook, "/rules"),
        })
    }
}

/// The webhooks of a webhook configuration that can be asked: those without side effects that call a Service.
pub fn admission_webhooks(configuration: &Value) -> impl Iterator<Item = AdmissionWebhook<'_>> {
    let admission_type = match object::text(configuration, "/kind") {
        Some("MutatingWebhookConfiguration") => AdmissionType::Mutating,
        _ => AdmissionType::Validating,
    };
    object::items(configuration, "/webhooks")
        .iter()
        .filter_map(move |webhook| AdmissionWebhook::of(webhook, admission_type))
}

/// What to say of webhooks of a webhook configuration that are armed although nobody has asked them: each, and why it cannot be
/// asked. `crds`: those of the bundle.
pub fn unasked(configuration: &Value, crds: &[&Value]) -> Vec<String> {
    let reason = |webhook: &Value| {
        if has_side_effects(webhook) {
            Some("it has side effects")
        } else if AdmissionWebhook::of(webhook, AdmissionType::Validating).is_none() {
            Some("it calls no Service, or supports no version of AdmissionReview that API servers send")
        } else if targets(object::items(webhook, "/rules"), crds).is_empty() {
            Some("no known object matches its rules")
        } else {
            None
        }
    };
    object::items(configuration, "/webhooks")
        .iter()
        .filter_map(|webhook| Some((object::text(webhook, "/name")?, reason(webhook)?)))
        .map(|(name, reason)| format!("admission webhook {name} is not tested before it is armed: {reason}"))
        .collect()
}

/// Whether a webhook may do something else beside answering when it is asked for a dry run.
fn has_side_effects(webhook: &Value) -> bool {
    !matches!(
        object::text(webhook, "/sideEffects"),
        Some("None" | "NoneOnDryRun")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn webhook(changes: Value) -> Value {
        let mut webhook = json!({
            "name": "w", "sideEffects": "None", "admissionReviewVersions": ["v2", "v1beta1", "v1"],
            "clientConfig": {"service": {"namespace": "n", "name": "s"}},
        });
        json_patch::merge(&mut webhook, &changes);
        webhook
    }

    fn read(changes: Value, check: impl FnOnce(Option<AdmissionWebhook<'_>>)) {
        let configuration = json!({"kind": "MutatingWebhookConfiguration", "webhooks": [webhook(changes)]});
        check(admission_webhooks(&configuration).next());
    }

    #[test]
    fn what_is_left_out_is_as_the_api_server_fills_it_in() {
        read(json!({}), |webhook| {
            let webhook = webhook.unwrap();
            assert_eq!(webhook.admission_type, AdmissionType::Mutating);
            assert_eq!((webhook.service, webhook.port, webhook.path), ("s", 443, "/"));
            assert_eq!(webhook.review_version, "v1beta1");
            assert_eq!(webhook.timeout, Duration::from_secs(10));
        });
        let service = json!({"port": 8443, "path": "/a"});
        let given =
            json!({"timeoutSeconds": 3, "clientConfig": {"service": service}, "sideEffects": "NoneOnDryRun"});
        read(given, |webhook| {
            let webhook = webhook.unwrap();
            assert_eq!((webhook.port, webhook.path), (8443, "/a"));
            assert_eq!(webhook.timeout, Duration::from_secs(3));
        });
    }

    #[test]
    fn a_webhook_that_is_not_asked_is_named_with_the_reason() {
        let rule = |resource: &str| json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]}]);
        for (changes, expected) in [
            (json!({"rules": rule("pods")}), None),
            (
                json!({"rules": rule("gadgets")}),
                Some("no known object matches its rules"),
            ),
            (
                json!({"rules": rule("pods"), "sideEffects": "Some"}),
                Some("side effects"),
            ),
            (
                json!({"rules": rule("pods"), "admissionReviewVersions": ["v2"]}),
                Some("AdmissionReview"),
            ),
        ] {
            let configuration = json!({"webhooks": [webhook(changes.clone())]});
            let found = unasked(&configuration, &[]);
            assert_eq!(
                found.len(),
                usize::from(expected.is_some()),
                "{changes}: {found:?}"
            );
            for part in expected.into_iter().chain(["admission webhook w is not tested"]) {
                assert!(found.iter().all(|notice| notice.contains(part)), "{found:?}");
            }
        }
        let gadgets = json!({"spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        }});
        let configuration = json!({"webhooks": [webhook(json!({"rules": rule("gadgets")}))]});
        assert_eq!(unasked(&configuration, &[&gadgets]), [""; 0]);
    }

    #[test]
    fn what_may_do_more_than_answer_or_answers_nobody_is_not_asked() {
        for changes in [
            json!({"sideEffects": "Unknown"}),
            json!({"sideEffects": "Some"}),
            json!({"sideEffects": null}),
            json!({"admissionReviewVersions": ["v2"]}),
            json!({"clientConfig": {"service": null, "url": "https://example.com"}}),
        ] {
            read(changes.clone(), |webhook| assert_eq!(webhook, None, "{changes}"));
        }
    }
}
