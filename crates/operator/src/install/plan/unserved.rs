//! What others call of a bundle's Services that it would no longer serve.

use serde_json::Value;
use thiserror::Error;
use windlass_object::{ObjectKey, text::Listing};

use super::{Phase, Plan};
use crate::install::traffic::{CalledPath, CalledPort};

/// Others call what the bundle does not serve.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{}, which the bundle does not serve: requests would fail. Delete it, point it elsewhere, or after an adoption run windlass adoption confirm {claimant}; to let them fail, set spec.upgrade.allowInterruption: true",
    CALLS.summarize(calls)
)]
pub struct UnservedCalls {
    /// Who calls what.
    pub calls: Vec<String>,
    /// Name of the BundleDeployment.
    pub claimant: String,
}

/// How a message lists who calls what.
pub const CALLS: Listing = Listing {
    most: 5,
    separator: ", ",
    way_to_rest: "",
};

/// What `others` call of those Services of `plan` of which `is_serving`, by name, and that it does not serve. What is `installed`
/// says what was served: nobody can tell what else a program answers. Without, whoever served is taken over, and served all of it.
pub fn unserved(
    plan: &Plan,
    installed: Option<&Plan>,
    is_serving: impl Fn(&str) -> bool,
    others: impl IntoIterator<Item = impl AsRef<Value>>,
) -> Vec<String> {
    let is_called = |called: &CalledPath| {
        let CalledPort {
            namespace, service, ..
        } = &called.port;
        let mut names = plan.certificates.iter();
        *namespace == plan.namespace && names.any(|names| names.service == *service) && is_serving(service)
    };
    let calls: Vec<_> = others
        .into_iter()
        .filter_map(|other| {
            let other = other.as_ref();
            let called = CalledPath::needed_by(other).into_iter().filter(is_called);
            let called: Vec<_> = called.collect();
            Some((ObjectKey::from_object(other)?, called)).filter(|(_, called)| !called.is_empty())
        })
        .collect();
    if calls.is_empty() {
        return Vec::new();
    }
    let served = plan.served();
    let was_served = installed.map(Plan::served);
    let is_missing = |called: &CalledPath| {
        !served.contains(called) && was_served.as_ref().is_none_or(|was| was.contains(called))
    };
    // What is to be taken over is pointed elsewhere.
    let planned: Vec<_> = [Phase::Callers, Phase::Crds]
        .into_iter()
        .flat_map(|phase| plan.phases.of(phase))
        .filter_map(ObjectKey::from_object)
        .collect();
    let mut missing = Vec::new();
    for (key, called) in calls {
        if !planned.iter().any(|planned| planned.is_same_object(&key)) {
            let called = called.iter().filter(|called| is_missing(called));
            missing.extend(called.map(|called| format!("{key} calls {called}")));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use windlass_bundle::render::{Conversion, ServingDefaults, WebhookCertificate};

    use super::{super::Phases, *};

    fn configuration(name: &str, service: &str, path: &str) -> Value {
        let service = json!({"namespace": "n", "name": service, "path": path});
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
            "webhooks": [{"name": "w", "clientConfig": {"service": service}}],
        })
    }

    fn plan(path: &str) -> Plan {
        Plan {
            namespace: "n".to_owned(),
            phases: Phases::new([configuration("ours", "s", path)]),
            conversions: vec![Conversion {
                crd: "widgets.example.com".to_owned(),
                namespace: "n".to_owned(),
                service: "s".to_owned(),
                port: 443,
                path: "/convert".to_owned(),
                review_versions: vec!["v1".to_owned()],
            }],
            self_managed: None,
            certificates: vec![WebhookCertificate {
                service: "s".to_owned(),
                green: "s-green".to_owned(),
                secret: "c".to_owned(),
                deployment: "d".to_owned(),
            }],
            serving: ServingDefaults::default(),
            examples: vec![],
            notices: vec![],
        }
    }

    #[test]
    fn what_was_served_and_is_called_is_missed() {
        let (before, after) = (plan("/v1"), plan("/v2"));
        let told = ["ValidatingWebhookConfiguration theirs calls /v1 at port 443 of Service n/s"];
        for (name, service, path, of_next, of_first) in [
            ("theirs", "s", "/v1", &told[..], &told[..]),
            ("theirs", "s", "/v2", &[], &[]),
            ("theirs", "s", "/convert", &[], &[]),
            // Nobody knows whether a program answers there.
            (
                "theirs",
                "s",
                "/else",
                &[],
                &["ValidatingWebhookConfiguration theirs calls /else at port 443 of Service n/s"],
            ),
            ("theirs", "other", "/v1", &[], &[]),
            ("ours", "s", "/v1", &[], &[]),
        ] {
            let other = Arc::new(configuration(name, service, path));
            let missed =
                |installed, is_serving| unserved(&after, installed, |_| is_serving, [Arc::clone(&other)]);
            assert_eq!(missed(Some(&before), true), of_next, "{path}");
            assert_eq!(missed(None, true), of_first, "{path}");
            assert_eq!(missed(None, false), [""; 0], "{path}");
        }
    }
}
