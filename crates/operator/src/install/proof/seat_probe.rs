//! What is written and asked to look from the API server's seat: a webhook configuration of our own, and an object that
//! only we create, as a dry run.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_object::{names, text::hexadecimal};

/// A probe that shows whether the API server completes a TLS handshake with a Service.
///
/// Its webhook configuration matches only dry runs of two ConfigMaps in the operator's namespace that no
/// other client creates. One is sent to the Service, on a path that no webhook server has. The other is sent
/// to a Service that does not exist: the error of the API server shows that it has observed the
/// configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatProbe {
    /// The name of the configuration, and of the ConfigMaps.
    pub name: String,
    /// The BundleDeployment for which this is asked.
    pub bundle_deployment: String,
    /// The operator's own namespace.
    pub own_namespace: String,
    /// The namespace of the Service.
    pub namespace: String,
    /// The Service.
    pub service: String,
    /// Its port.
    pub port: i64,
    /// The trust bundle, PEM in base64.
    pub ca_bundle: String,
}

/// Which webhook of the configuration is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbePart {
    /// The one that calls the Service in question.
    Reach,
    /// The one that calls nobody.
    Observe,
}

/// A path that no webhook server has.
const PATH: &str = "/windlass.dev/probe";

/// The name of a Service that there is not.
const NOBODY: &str = "windlass-probe-of-nobody";

/// How long the API server tries, in seconds.
const TIMEOUT: u64 = 5;

/// How much of the hash is in the names.
const HASH: usize = 10;

impl SeatProbe {
    /// The question about a Service. Its name says what it is about, so one that is left over from a question about
    /// something else is never taken for this one.
    pub fn new(
        bundle_deployment: &str,
        own_namespace: &str,
        (namespace, service, port): (&str, &str, i64),
        ca_bundle: String,
    ) -> Self {
        let mut probe = Self {
            name: String::new(),
            bundle_deployment: bundle_deployment.to_owned(),
            own_namespace: own_namespace.to_owned(),
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port,
            ca_bundle,
        };
        probe.name = format!("windlass-probe-{bundle_deployment}-{}", probe.hash());
        probe
    }

    /// The webhook configuration.
    pub fn configuration(&self) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.name, "labels": {names::PROBE: self.bundle_deployment}},
            "webhooks": [self.webhook(ProbePart::Reach), self.webhook(ProbePart::Observe)],
        })
    }

    /// The object that is created, as a dry run only, to have a webhook called.
    pub fn object(&self, part: ProbePart) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name, "namespace": self.own_namespace, "labels": {names::PROBE: part.label()},
            },
        })
    }

    /// The name of a webhook, by which messages of the API server name it.
    pub fn webhook_name(&self, part: ProbePart) -> String {
        format!("{}.{}.probe.windlass.dev", part.label(), self.hash())
    }

    fn webhook(&self, part: ProbePart) -> Value {
        let service = match part {
            ProbePart::Reach => {
                json!({"namespace": self.namespace, "name": self.service, "port": self.port, "path": PATH})
            }
            ProbePart::Observe => json!({"namespace": self.own_namespace, "name": NOBODY, "path": PATH}),
        };
        let only = format!(
            "object.metadata.name == '{}' && has(request.dryRun) && request.dryRun",
            self.name
        );
        json!({
            "name": self.webhook_name(part),
            "clientConfig": {"service": service, "caBundle": self.ca_bundle},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
                "scope": "Namespaced",
            }],
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.own_namespace}},
            "objectSelector": {"matchLabels": {names::PROBE: part.label()}},
            "matchConditions": [{"name": "only-the-probe", "expression": only}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT,
            "admissionReviewVersions": ["v1"],
        })
    }

    fn hash(&self) -> String {
        let Self {
            namespace,
            service,
            port,
            ca_bundle,
            bundle_deployment,
            ..
        } = self;
        let text = format!("{bundle_deployment} {namespace} {service} {port} {ca_bundle}");
        let mut hash = hexadecimal(&Sha256::digest(text));
        hash.truncate(HASH);
        hash
    }
}

impl ProbePart {
    fn label(self) -> &'static str {
        match self {
            Self::Reach => "reach",
            Self::Observe => "observe",
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_object::object;

    use super::*;

    fn probe(service: &str, ca_bundle: &str) -> SeatProbe {
        SeatProbe::new(
            "sample",
            "windlass-system",
            ("n", service, 443),
            ca_bundle.to_owned(),
        )
    }

    #[test]
    fn it_takes_only_what_only_we_create_and_never_for_real() {
        let probe = probe("s", "QQ==");
        let configuration = probe.configuration();
        let webhooks = object::items(&configuration, "/webhooks");
        for (webhook, part) in webhooks.iter().zip([ProbePart::Reach, ProbePart::Observe]) {
            let object = probe.object(part);
            assert_eq!(
                webhook["objectSelector"]["matchLabels"],
                object["metadata"]["labels"]
            );
            let only = webhook["matchConditions"][0]["expression"].as_str().unwrap();
            assert!(
                only.contains(&format!("'{}'", probe.name)) && only.contains("request.dryRun"),
                "{only}"
            );
            assert_eq!(webhook["rules"][0]["operations"], json!(["CREATE"]));
            assert_eq!(webhook["failurePolicy"], "Fail");
            assert_eq!(webhook["sideEffects"], "None");
            assert_eq!(webhook["name"], probe.webhook_name(part));
        }
        assert_eq!(webhooks.len(), 2);
        assert_eq!(webhooks[0]["clientConfig"]["service"]["name"], "s");
        assert_ne!(webhooks[1]["clientConfig"]["service"]["name"], "s");
    }

    #[test]
    fn no_cleaning_up_after_a_bundle_takes_it_for_an_object_of_the_bundle() {
        let configuration = probe("s", "QQ==").configuration();
        assert_eq!(object::label(&configuration, names::BUNDLE_DEPLOYMENT), None);
        assert_eq!(object::label(&configuration, names::PROBE), Some("sample"));
    }

    #[test]
    fn another_question_has_another_name() {
        let one = probe("s", "QQ==");
        assert_eq!(one, probe("s", "QQ=="));
        for other in [probe("t", "QQ=="), probe("s", "Qg==")] {
            assert_ne!(one.name, other.name);
            assert_ne!(
                one.webhook_name(ProbePart::Reach),
                other.webhook_name(ProbePart::Reach)
            );
        }
    }
}
