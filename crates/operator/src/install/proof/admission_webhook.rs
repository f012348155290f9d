//! The admission webhooks of a plan, as the API server would call them.

use std::time::Duration;

use serde_json::Value;
use windlass_object::object;

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

// === impl AdmissionWebhook ===

impl<'a> AdmissionWebhook<'a> {
    /// Reads a webhook of a configuration; `None` where nobody can ask it: it calls no Service, knows no version of
    /// AdmissionReview that is sent, or may do something else beside answering when it is asked for a dry run.
    fn of(webhook: &'a Value, admission_type: AdmissionType) -> Option<Self> {
        let text = |pointer| object::text(webhook, pointer);
        if !matches!(text("/sideEffects"), Some("None" | "NoneOnDryRun")) {
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
