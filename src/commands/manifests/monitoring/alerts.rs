//! The alerts. Each has a page in `docs/runbooks`.

use serde_json::{Value, json};

struct Alert {
    name: &'static str,
    severity: Severity,
    /// How long the expression must hold.
    lasts: &'static str,
    expression: &'static str,
    summary: &'static str,
}

/// The urgency of an alert.
#[derive(Clone, Copy, Debug)]
enum Severity {
    /// API requests fail, or will soon.
    Critical,
    /// Can wait until working hours.
    Warning,
}

/// The URL of the runbooks.
const RUNBOOKS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/runbooks");

const CERTIFICATES: [Alert; 8] = [
    Alert {
        name: "WindlassCertificateExpiresSoon",
        severity: Severity::Critical,
        lasts: "5m",
        // A third of a certificate's lifetime is between its renewal and its expiry.
        expression: "min by (namespace, name) (windlass_serving_certificate_expiration_timestamp_seconds) - time()
  < (min by (namespace, name) (windlass_serving_certificate_expiration_timestamp_seconds)
    - min by (namespace, name) (windlass_serving_certificate_renewal_timestamp_seconds)) / 2",
        summary: "The serving certificate {{ $labels.namespace }}/{{ $labels.name }} should have been renewed and expires in {{ $value | humanizeDuration }}.",
    },
    Alert {
        name: "WindlassCAExpiresSoon",
        severity: Severity::Critical,
        lasts: "5m",
        expression: "min by (namespace, name) (windlass_serving_certificate_ca_expiration_timestamp_seconds{ca=\"current\"}) - time()
  < (min by (namespace, name) (windlass_serving_certificate_ca_expiration_timestamp_seconds{ca=\"current\"})
    - min by (namespace, name) (windlass_serving_certificate_ca_renewal_timestamp_seconds)) / 2",
        summary: "The CA of {{ $labels.namespace }}/{{ $labels.name }} should have been rotated and expires in {{ $value | humanizeDuration }}.",
    },
    Alert {
        name: "WindlassCertificateNotReloaded",
        severity: Severity::Critical,
        lasts: "5m",
        expression: "max by (namespace, name) (windlass_serving_certificate_not_reloaded) == 1",
        summary: "A server has not loaded the renewed certificate {{ $labels.namespace }}/{{ $labels.name }}, or may not have, and the replaced one expires soon.",
    },
    Alert {
        name: "WindlassCertificateNotServed",
        severity: Severity::Critical,
        lasts: "10m",
        expression: "max by (namespace, name) (windlass_serving_certificate_condition{type=\"Served\", status=\"False\"}) == 1",
        summary: "A server of {{ $labels.namespace }}/{{ $labels.name }} presents a certificate that API servers reject, or no server is ready.",
    },
    Alert {
        name: "WindlassCertificateNotTrusted",
        severity: Severity::Critical,
        lasts: "10m",
        expression: "max by (namespace, name) (windlass_serving_certificate_condition{type=\"Trusted\", status=\"False\"}) == 1",
        summary: "A target does not trust the CA of {{ $labels.namespace }}/{{ $labels.name }}: its webhooks may fail.",
    },
    Alert {
        name: "WindlassTargetContested",
        severity: Severity::Warning,
        lasts: "10m",
        expression: "sum by (kind, name) (increase(windlass_target_repairs_total[30m])) > 3",
        summary: "Another client keeps overwriting the caBundle of {{ $labels.kind }} {{ $labels.name }}.",
    },
    Alert {
        name: "WindlassRotationWaits",
        severity: Severity::Warning,
        lasts: "1d",
        expression: "max by (namespace, name) (windlass_serving_certificate_phase{phase!=\"Stable\"}) == 1",
        summary: "The rotation of the CA of {{ $labels.namespace }}/{{ $labels.name }} has been waiting for a day.",
    },
    Alert {
        name: "WindlassKindsUnlisted",
        severity: Severity::Warning,
        lasts: "15m",
        expression: "max by (kind) (windlass_unlisted_kinds) == 1",
        summary: "Windlass cannot list {{ $labels.kind }}: no CA is replaced until it can.",
    },
];

const BUNDLES: [Alert; 3] = [
    Alert {
        name: "WindlassBundleUnavailable",
        severity: Severity::Critical,
        lasts: "10m",
        expression: "max by (name) (windlass_bundle_deployment_condition{type=\"Available\", status=\"False\"}) == 1",
        summary: "The installed revision of the BundleDeployment {{ $labels.name }} is not available.",
    },
    Alert {
        name: "WindlassBundleNotArmed",
        severity: Severity::Warning,
        lasts: "15m",
        expression: "max by (name) (windlass_bundle_deployment_condition{type=\"Armed\", status=\"False\"}) == 1",
        summary: "Webhooks or conversions of the BundleDeployment {{ $labels.name }} are not armed.",
    },
    Alert {
        name: "WindlassBundleNotReady",
        severity: Severity::Warning,
        lasts: "1h",
        expression:
            "max by (name) (windlass_bundle_deployment_condition{type=\"Ready\", status!=\"True\"}) == 1
  unless on (name) max by (name) (windlass_bundle_deployment_paused) == 1",
        summary: "The BundleDeployment {{ $labels.name }} has not been ready for an hour.",
    },
];

const OPERATOR: [Alert; 5] = [
    Alert {
        name: "WindlassDown",
        severity: Severity::Critical,
        lasts: "10m",
        expression: "absent(windlass_leader)",
        summary: "No replica of Windlass is scraped: certificates are not renewed while no replica runs.",
    },
    Alert {
        name: "WindlassNoLeader",
        severity: Severity::Critical,
        lasts: "5m",
        expression: "sum by (app_kubernetes_io_name) (windlass_leader) == 0",
        summary: "No replica of {{ $labels.app_kubernetes_io_name }} is the leader.",
    },
    Alert {
        name: "WindlassReconciliationsFail",
        severity: Severity::Warning,
        lasts: "15m",
        expression: "sum by (controller) (rate(windlass_reconciliations_total{outcome=\"failure\"}[10m]))
  / sum by (controller) (rate(windlass_reconciliations_total[10m])) > 0.5",
        summary: "More than half of the reconciliations of {{ $labels.controller }} fail.",
    },
    Alert {
        name: "WindlassAPIServerRefuses",
        severity: Severity::Warning,
        lasts: "15m",
        expression: "sum by (app_kubernetes_io_name) (rate(rest_client_requests_total{code=~\"403|5..|<error>\", app_kubernetes_io_name=~\"windlass.*\"}[10m]))
  / sum by (app_kubernetes_io_name) (rate(rest_client_requests_total{app_kubernetes_io_name=~\"windlass.*\"}[10m])) > 0.1",
        summary: "More than a tenth of the requests of {{ $labels.app_kubernetes_io_name }} to API servers fail.",
    },
    Alert {
        name: "WindlassClockSkew",
        severity: Severity::Warning,
        lasts: "15m",
        expression: "max by (pod) (abs(windlass_clock_ahead_seconds)) > 30",
        summary: "The clocks of {{ $labels.pod }} and of an API server differ by {{ $value | humanizeDuration }}.",
    },
];

const POLICIES: [Alert; 2] = [
    Alert {
        name: "WindlassPolicyReviewsFail",
        severity: Severity::Critical,
        lasts: "5m",
        expression: "sum by (stage) (rate(windlass_policy_review_duration_seconds_count{outcome=\"failure\"}[5m])) > 0",
        summary: "The policy server does not answer requests ({{ $labels.stage }}): requests for policies with failurePolicy Fail are rejected.",
    },
    Alert {
        name: "WindlassPolicyFails",
        severity: Severity::Warning,
        lasts: "10m",
        expression: "sum by (name, error_type) (rate(kcloudlabs_policy_error_count[10m])) > 0",
        summary: "The policy {{ $labels.name }} fails ({{ $labels.error_type }}).",
    },
];

/// Returns the groups of a Prometheus rule file or a PrometheusRule.
pub fn rule_groups() -> Value {
    let group = |name: &str, alerts: &[Alert]| json!({ "name": name, "rules": alerts.iter().map(Alert::rule).collect::<Vec<_>>() });
    json!({ "groups": [
        group("windlass-certificates", &CERTIFICATES),
        group("windlass-bundles", &BUNDLES),
        group("windlass-operator", &OPERATOR),
        group("windlass-policies", &POLICIES),
    ] })
}

impl Alert {
    fn rule(&self) -> Value {
        json!({
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasts,
            "labels": { "severity": self.severity.name() },
            "annotations": {
                "summary": self.summary,
                "runbook_url": format!("{RUNBOOKS}/{}.md", self.name),
            },
        })
    }
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}
