//! The CA bundles with which callers verify Services.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_object::{ObjectKey, age::until, object};
use windlass_trust::injection::{CaBundle, Holder, TargetKind};

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// How long before the last CA expires a warning begins, so that there is time to renew it.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Judges the CA bundles of an object that calls Services; returns only problems.
pub fn caller_trust(caller: &Value, now: Timestamp) -> Vec<DoctorFinding> {
    let (Some(key), Some(kind)) = (ObjectKey::from_object(caller), TargetKind::from_object(caller)) else {
        return Vec::new();
    };
    let holders = kind.holders(caller).into_iter();
    let calling = holders.filter(|holder| {
        let service = caller.pointer(&format!("{}/service", holder.pointer));
        service.is_some_and(Value::is_object)
    });
    let findings = calling.filter_map(|holder| {
        let policy = holder.pointer.strip_suffix("/clientConfig").map(|webhook| {
            let policy = object::text(caller, &format!("{webhook}/failurePolicy"));
            policy.unwrap_or("Fail")
        });
        judge(&key, &holder, policy != Some("Ignore"), now)
    });
    findings.collect()
}

fn judge(key: &ObjectKey, holder: &Holder<'_>, is_fatal: bool, now: Timestamp) -> Option<DoctorFinding> {
    let named = match holder.entry {
        Some(webhook) => format!("webhook {webhook}: "),
        None => String::new(),
    };
    let failing = |check: DoctorCheck, message: &str| {
        let message = format!("{named}{message}");
        Some(match is_fatal {
            true => check.error(key, message),
            false => check.warning(key, message),
        })
    };
    let CaBundle::Read(contents) = holder.ca_bundle() else {
        let message = "its caBundle is missing or not base64, so its calls fail: have it injected, or write the CA of the server there";
        return failing(DoctorCheck::NothingTrusted, message);
    };
    if !contents.is_usable() || contents.certificates.is_empty() {
        let message = "its caBundle contains no readable certificates, so its calls fail: have it injected, or write the CA of the server there";
        return failing(DoctorCheck::NothingTrusted, message);
    }
    let last = contents
        .certificates
        .iter()
        .map(windlass_trust::pki::Certificate::not_after)
        .max()?;
    if last <= now {
        let message = format!(
            "every CA in its caBundle has expired, the last on {}, so its calls fail: renew the CA and inject it",
            until(last, now)
        );
        return failing(DoctorCheck::TrustEnded, &message);
    }
    (last.duration_since(now) < SOON).then(|| {
        let message = format!(
            "{named}the last CA in its caBundle expires on {}: make sure that its issuer renews it in time",
            until(last, now)
        );
        DoctorCheck::TrustEndsSoon.warning(key, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_trust::{
        pki::sample::{self, DAY, NOW, YEAR},
        trust_bundle::TrustBundle,
    };

    use super::*;
    use crate::finding::DoctorSeverity::{Error, Warning};

    fn configuration(bundle: &Value, policy: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hooks"},
            "webhooks": [{"name": "a.example.com", "failurePolicy": policy, "clientConfig": {
                "service": {"namespace": "a", "name": "hook"}, "caBundle": bundle,
            }}],
        })
    }

    #[test]
    fn trust_is_judged_by_the_expiry_of_the_last_ca() {
        let trust_bundle = TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap();
        let good = json!(CaBundle::encode(&trust_bundle));
        let end = NOW + YEAR;
        for (bundle, policy, now, expected) in [
            (&good, "Fail", NOW, None),
            (&good, "Fail", end - 2 * DAY, Some((Warning, "TrustEndsSoon"))),
            (&good, "Fail", end, Some((Error, "TrustEnded"))),
            (&good, "Ignore", end, Some((Warning, "TrustEnded"))),
            (&json!(null), "Fail", NOW, Some((Error, "NothingTrusted"))),
            (&json!("!"), "Fail", NOW, Some((Error, "NothingTrusted"))),
            (
                &json!("aGVsbG8="),
                "Ignore",
                NOW,
                Some((Warning, "NothingTrusted")),
            ),
        ] {
            let found = caller_trust(&configuration(bundle, policy), now);
            let found: Vec<_> = found
                .iter()
                .map(|finding| (finding.severity, &*finding.reason))
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{bundle} {now}");
        }
    }

    #[test]
    fn urls_and_insecure_api_services_need_no_ca_bundle() {
        let mut caller = configuration(&json!(null), "Fail");
        caller["webhooks"][0]["clientConfig"] = json!({"url": "https://example.com"});
        assert!(caller_trust(&caller, NOW).is_empty());
        let skipping = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.a"},
            "spec": {"service": {"namespace": "a", "name": "b"}, "insecureSkipTLSVerify": true},
        });
        assert!(caller_trust(&skipping, NOW).is_empty());
        assert!(caller_trust(&json!({"kind": "Secret"}), NOW).is_empty());
    }
}
