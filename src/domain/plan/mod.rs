//! From what a bundle renders to, and what is in the cluster, to the phases of an install, or to the reasons why there
//! is none.

mod crds;
mod phases;
mod preflight;
mod sample;

use serde_json::{Value, json};

pub use crds::{Stage, dropped_but_stored, may_stop_converting, staged, unproven_versions};
pub use phases::{Phase, Phases};
pub use preflight::{Refusal, preflight};
pub use sample::minimal_object;

/// An install: what there is to be, and what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The namespace of the install.
    pub namespace: String,
    /// Every object, with definitions without conversion and webhook configurations without CA bundles.
    pub phases: Phases,
    /// The conversions that are claimed.
    pub conversions: Vec<Conversion>,
    /// The serving certificates that are needed.
    pub certificates: Vec<Certificate>,
}

/// A serving certificate that an install needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The Service; the ServingCertificate has its name.
    pub service: String,
    /// The Secret.
    pub secret: String,
}

/// The conversion of one CustomResourceDefinition by a webhook of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The CustomResourceDefinition.
    pub crd: String,
    /// The namespace of the Service.
    pub namespace: String,
    /// The Service.
    pub service: String,
    /// The port of the Service.
    pub port: i64,
    /// The path, with a leading slash.
    pub path: String,
    /// Versions of ConversionReview that the webhook understands, best first.
    pub review_versions: Vec<String>,
}

// === impl Conversion ===

impl Conversion {
    /// `spec.conversion` that sends conversions here.
    pub fn stanza(&self, ca_bundle: &str) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "caBundle": ca_bundle,
                    "service": {
                        "namespace": self.namespace,
                        "name": self.service,
                        "path": self.path,
                        "port": self.port,
                    }
                },
                "conversionReviewVersions": self.review_versions,
            }
        })
    }

    /// Whether a live `spec.conversion` sends conversions here, whatever it trusts.
    pub fn is_in(&self, live: &Value) -> bool {
        let mut live = live.clone();
        if let Some(config) = live
            .pointer_mut("/webhook/clientConfig")
            .and_then(Value::as_object_mut)
        {
            config.shift_remove("caBundle");
        }
        let mut wanted = self.stanza("");
        if let Some(config) = wanted
            .pointer_mut("/webhook/clientConfig")
            .and_then(Value::as_object_mut)
        {
            config.shift_remove("caBundle");
        }
        live == wanted
    }

    /// The name under which the Service is dialled.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stanza_is_recognised_whatever_it_trusts() {
        let conversion = Conversion {
            crd: "widgets.example.com".into(),
            namespace: "n".into(),
            service: "s".into(),
            port: 443,
            path: "/convert".into(),
            review_versions: vec!["v1".into()],
        };
        let live = conversion.stanza("QQ==");
        assert!(conversion.is_in(&live));
        let other = Conversion {
            path: "/other".into(),
            ..conversion
        };
        assert!(!other.is_in(&live));
        assert!(!other.is_in(&json!({"strategy": "None"})));
        assert_eq!(other.server_name(), "s.n.svc");
    }
}
