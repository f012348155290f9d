//! The CAs that clients of webhooks trust.

use jiff::Timestamp;
use serde_json::Value;
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::{CaBundle, TargetKind},
    pki::Certificate,
};

use crate::problem::{ProblemSeverity, ReportedProblem};

/// An object that requests the CA bundle of a ServingCertificate, and the CAs that it trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedTarget {
    /// Kind, namespace and name of the target.
    pub key: ObjectKey,
    /// The ServingCertificate, as `namespace/name`.
    pub certificate: String,
    /// The distinct CAs in all CA bundles of the target.
    pub trusts: Vec<TrustedAuthority>,
    /// Whether a CA bundle of the target is missing or unreadable.
    pub is_incomplete: bool,
}

/// A CA in the trust bundle of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedAuthority {
    /// Common name of the CA.
    pub name: String,
    /// The first digits of the SHA-256 of the certificate.
    pub fingerprint: String,
    /// When the CA expires.
    pub not_after: Timestamp,
}

impl ReportedTarget {
    /// Reads an object of `kind`; `None` if it requests no CA bundle of a ServingCertificate.
    pub fn read(target: &Value, kind: &TargetKind) -> Option<Self> {
        let certificate = object::annotation(target, names::INJECT_CA_FROM)?;
        let mut trusts: Vec<TrustedAuthority> = Vec::new();
        let mut is_incomplete = false;
        for holder in kind.holders(target) {
            let CaBundle::Read(contents) = holder.ca_bundle() else {
                is_incomplete = true;
                continue;
            };
            is_incomplete |= !contents.is_usable() || contents.certificates.is_empty();
            for authority in contents
                .certificates
                .iter()
                .map(TrustedAuthority::from_certificate)
            {
                if !trusts.contains(&authority) {
                    trusts.push(authority);
                }
            }
        }
        trusts.sort_by_key(|authority| authority.not_after);
        Some(Self {
            key: ObjectKey::from_object(target)?,
            certificate: certificate.to_owned(),
            trusts,
            is_incomplete,
        })
    }

    /// Returns the problem of the target, apart from those that its ServingCertificate reports.
    pub(crate) fn problem(&self, is_known: bool, now: Timestamp) -> Option<ReportedProblem> {
        let problem = |severity, reason: &str, message: String| {
            Some(ReportedProblem {
                severity,
                subject: self.key.to_string(),
                reason: reason.to_owned(),
                message,
            })
        };
        if !is_known {
            let message = format!(
                "requests the trust bundle of ServingCertificate {}, which does not exist: create it, or correct the annotation {}",
                self.certificate,
                names::INJECT_CA_FROM
            );
            return problem(ProblemSeverity::Waiting, "ServingCertificateNotFound", message);
        }
        let last = self.trusts.iter().map(|authority| authority.not_after).max();
        match last {
            Some(last) if last <= now => problem(
                ProblemSeverity::Failing,
                "TrustEnded",
                "every CA that it trusts has expired: its calls fail".to_owned(),
            ),
            None => problem(
                ProblemSeverity::Failing,
                "NothingTrusted",
                "its caBundle is missing or unreadable: its calls fail".to_owned(),
            ),
            _ => None,
        }
    }
}

impl TrustedAuthority {
    fn from_certificate(certificate: &Certificate) -> Self {
        let digest = certificate.fingerprint();
        Self {
            name: certificate.common_name().unwrap_or("(unnamed)").to_owned(),
            fingerprint: digest[..4].iter().map(|byte| format!("{byte:02x}")).collect(),
            not_after: certificate.not_after(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_trust::{pki::sample, trust_bundle::TrustBundle};

    use super::*;

    fn configuration(bundles: &[Option<&str>], annotations: &Value) -> Value {
        let webhooks: Vec<_> = bundles
            .iter()
            .enumerate()
            .map(|(number, bundle)| {
                json!({"name": format!("w{number}.example.com"), "clientConfig": {
                    "service": {"namespace": "a", "name": "hook"}, "caBundle": bundle,
                }})
            })
            .collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hooks", "annotations": annotations}, "webhooks": webhooks,
        })
    }

    fn read(target: &Value) -> Option<ReportedTarget> {
        ReportedTarget::read(target, TargetKind::from_object(target).unwrap())
    }

    #[test]
    fn each_ca_is_listed_once_and_gaps_are_reported() {
        let authorities = [1, 2].map(|generation| sample::authority(generation).certificate().clone());
        let trust = CaBundle::encode(&TrustBundle::new(authorities.clone()).unwrap());
        let asks = json!({names::INJECT_CA_FROM: "a/hook"});
        let target = read(&configuration(&[Some(&trust), Some(&trust)], &asks)).unwrap();
        assert_eq!((target.trusts.len(), target.is_incomplete), (2, false));
        assert_eq!(target.certificate, "a/hook");
        let target = read(&configuration(&[Some(&trust), None], &asks)).unwrap();
        assert_eq!((target.trusts.len(), target.is_incomplete), (2, true));
        assert!(read(&configuration(&[Some(&trust)], &json!({}))).is_none());
    }

    #[test]
    fn missing_and_invalid_trust_is_a_problem() {
        let now = sample::authority(1).certificate().not_after();
        let before = now - jiff::SignedDuration::from_hours(1);
        let trust =
            CaBundle::encode(&TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap());
        let asks = json!({names::INJECT_CA_FROM: "a/hook"});
        let target = read(&configuration(&[Some(&trust)], &asks)).unwrap();
        let reason = |target: &ReportedTarget, is_known, now| {
            target.problem(is_known, now).map(|problem| problem.reason)
        };
        assert_eq!(reason(&target, true, before), None);
        assert_eq!(reason(&target, true, now).as_deref(), Some("TrustEnded"));
        assert_eq!(
            reason(&target, false, before).as_deref(),
            Some("ServingCertificateNotFound")
        );
        let nothing = read(&configuration(&[Some("!")], &asks)).unwrap();
        assert_eq!(reason(&nothing, true, before).as_deref(), Some("NothingTrusted"));
    }
}
