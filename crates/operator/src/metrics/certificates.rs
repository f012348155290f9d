//! State metrics of ServingCertificates, named like those of cert-manager.

use serde_json::Value;
use windlass_cluster::telemetry::Reading;
use windlass_object::object;
use windlass_trust::rotation::Reason;

use super::state::{StateMetric, conditions, info_reading, labelled, number, single, time};

pub(super) const METRICS: &[StateMetric] = &[
    StateMetric {
        name: "serving_certificate_expiration_timestamp_seconds",
        help: "When the serving certificate in the Secret expires, in seconds since 1970",
        read: |certificate| single(time(certificate, "/status/notAfter")),
    },
    StateMetric {
        name: "serving_certificate_renewal_timestamp_seconds",
        help: "When the serving certificate is renewed, in seconds since 1970",
        read: |certificate| single(time(certificate, "/status/renewalTime")),
    },
    StateMetric {
        name: "serving_certificate_ca_expiration_timestamp_seconds",
        help: "When the current and the next CA expire, in seconds since 1970",
        read: |certificate| labelled_by_ca(|ca| time(certificate, &format!("/status/ca/{ca}/notAfter"))),
    },
    StateMetric {
        name: "serving_certificate_ca_renewal_timestamp_seconds",
        help: "When the next CA starts to sign, in seconds since 1970",
        read: |certificate| single(time(certificate, "/status/ca/renewalTime")),
    },
    StateMetric {
        name: "serving_certificate_ca_generation",
        help: "Generation of the current and of the next CA, which each rotation increases",
        read: |certificate| labelled_by_ca(|ca| number(certificate, &format!("/status/ca/{ca}/generation"))),
    },
    StateMetric {
        name: "serving_certificate_phase",
        help: "1 for the current phase of the rotation",
        read: phase,
    },
    StateMetric {
        name: "serving_certificate_endpoints",
        help: "Ready endpoints of the Service, and how many of them serve the certificate in the Secret",
        read: |certificate| {
            let count = |state| number(certificate, &format!("/status/endpoints/{state}"));
            labelled("state", ["ready", "current"].map(|state| (state, count(state))))
        },
    },
    StateMetric {
        name: "serving_certificate_targets",
        help: "Targets that request the trust bundle: all, current ones, failing ones, and those that another manager overwrites",
        read: targets,
    },
    StateMetric {
        name: "serving_certificate_condition",
        help: "1 for the current status and reason of each condition",
        read: conditions,
    },
    StateMetric {
        name: "serving_certificate_not_reloaded",
        help: "1 if a server has not, or may not have, reloaded the certificate, and its old certificate expires soon",
        read: not_reloaded,
    },
];

fn labelled_by_ca(read: impl Fn(&str) -> Option<i64>) -> Vec<Reading> {
    labelled("ca", ["current", "next"].map(|ca| (ca, read(ca))))
}

fn phase(certificate: &Value) -> Vec<Reading> {
    info_reading([("phase", object::text(certificate, "/status/phase"))])
}

fn targets(certificate: &Value) -> Vec<Reading> {
    let Some(targets) = certificate.pointer("/status/targets") else {
        return Vec::new();
    };
    let listed = |pointer| i64::try_from(object::items(targets, pointer).len()).ok();
    labelled(
        "state",
        [
            ("total", number(targets, "/total")),
            ("current", number(targets, "/current")),
            ("failing", listed("/failing")),
            ("contested", listed("/contested")),
        ],
    )
}

fn not_reloaded(certificate: &Value) -> Vec<Reading> {
    let ready = object::condition(certificate, "Ready");
    let reason = ready.and_then(|ready| object::text(ready, "/reason"));
    let is_it = reason == Some(&Reason::NotReloaded.to_string());
    single(is_it.then_some(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::state::lines, *};

    #[test]
    fn the_metrics_of_a_certificate_match_its_status() {
        let certificate = json!({
            "metadata": {"namespace": "n", "name": "hook"},
            "status": {
                "phase": "Signing",
                "notAfter": "2026-01-01T00:00:10Z",
                "renewalTime": "2026-01-01T00:00:00Z",
                "ca": {
                    "current": {"generation": 4, "notAfter": "2027-01-01T00:00:00Z"},
                    "next": {"generation": 5, "notAfter": "2028-01-01T00:00:00Z"},
                    "renewalTime": "2026-06-01T00:00:00Z",
                },
                "endpoints": {"ready": 2, "current": 1},
                "targets": {"total": 15, "current": 14, "failing": [{"kind": "APIService", "name": "a", "message": "m"}]},
                "conditions": [
                    {"type": "Served", "status": "Unknown", "reason": "Unobservable"},
                    {"type": "Ready", "status": "False", "reason": "NotReloaded"},
                ],
            },
        });
        let named = |name: &str, labels: &str| {
            format!("serving_certificate_{name}{{namespace=\"n\",name=\"hook\"{labels}}}")
        };
        let expected = [
            named("expiration_timestamp_seconds", "") + " 1767225610",
            named("renewal_timestamp_seconds", "") + " 1767225600",
            named("ca_expiration_timestamp_seconds", ",ca=\"current\"") + " 1798761600",
            named("ca_expiration_timestamp_seconds", ",ca=\"next\"") + " 1830297600",
            named("ca_renewal_timestamp_seconds", "") + " 1780272000",
            named("ca_generation", ",ca=\"current\"") + " 4",
            named("ca_generation", ",ca=\"next\"") + " 5",
            named("phase", ",phase=\"Signing\"") + " 1",
            named("endpoints", ",state=\"ready\"") + " 2",
            named("endpoints", ",state=\"current\"") + " 1",
            named("targets", ",state=\"total\"") + " 15",
            named("targets", ",state=\"current\"") + " 14",
            named("targets", ",state=\"failing\"") + " 1",
            named("targets", ",state=\"contested\"") + " 0",
            named(
                "condition",
                ",type=\"Served\",status=\"Unknown\",reason=\"Unobservable\"",
            ) + " 1",
            named(
                "condition",
                ",type=\"Ready\",status=\"False\",reason=\"NotReloaded\"",
            ) + " 1",
            named("not_reloaded", "") + " 1",
        ];
        assert_eq!(lines(METRICS, &certificate), expected);
    }

    #[test]
    fn a_certificate_without_status_has_no_metrics() {
        let certificate = json!({"metadata": {"namespace": "n", "name": "hook"}, "spec": {}});
        assert_eq!(lines(METRICS, &certificate), [""; 0]);
    }
}
