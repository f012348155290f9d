//! Series with which alerts fire.

/// For each alert, series with which it fires, in values per minute.
pub(crate) const FIRING: [(&str, &[(&str, &str)]); 18] = [
    (
        "WindlassCertificateExpiresSoon",
        &[
            (
                "windlass_serving_certificate_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\"}",
                "9000x3000",
            ),
            (
                "windlass_serving_certificate_renewal_timestamp_seconds{namespace=\"n\", name=\"hook\"}",
                "3000x3000",
            ),
        ],
    ),
    (
        "WindlassCAExpiresSoon",
        &[
            (
                "windlass_serving_certificate_ca_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\", ca=\"current\"}",
                "9000x3000",
            ),
            (
                "windlass_serving_certificate_ca_renewal_timestamp_seconds{namespace=\"n\", name=\"hook\"}",
                "3000x3000",
            ),
        ],
    ),
    (
        "WindlassCertificateNotReloaded",
        &[(
            "windlass_serving_certificate_not_reloaded{namespace=\"n\", name=\"hook\"}",
            "1x3000",
        )],
    ),
    (
        "WindlassCertificateNotServed",
        &[(
            "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Served\", status=\"False\", reason=\"NotServed\"}",
            "1x3000",
        )],
    ),
    (
        "WindlassCertificateNotTrusted",
        &[(
            "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Trusted\", status=\"False\", reason=\"Blocked\"}",
            "1x3000",
        )],
    ),
    (
        "WindlassTargetContested",
        &[(
            "windlass_target_repairs_total{kind=\"APIService\", name=\"a\"}",
            "0+1x3000",
        )],
    ),
    (
        "WindlassRotationWaits",
        &[(
            "windlass_serving_certificate_phase{namespace=\"n\", name=\"hook\", phase=\"Signing\"}",
            "1x3000",
        )],
    ),
    (
        "WindlassKindsUnlisted",
        &[("windlass_unlisted_kinds{kind=\"v1, Kind=Secret\"}", "1x3000")],
    ),
    (
        "WindlassBundleUnavailable",
        &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Available\", status=\"False\", reason=\"Unavailable\"}",
            "1x3000",
        )],
    ),
    (
        "WindlassBundleNotArmed",
        &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Armed\", status=\"False\", reason=\"NotProven\"}",
            "1x3000",
        )],
    ),
    (
        "WindlassBundleNotReady",
        &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Ready\", status=\"Unknown\", reason=\"Waiting\"}",
            "1x3000",
        )],
    ),
    ("WindlassDown", &[("up{job=\"another\"}", "1x3000")]),
    (
        "WindlassNoLeader",
        &[
            (
                "windlass_leader{app_kubernetes_io_name=\"windlass\", pod=\"a\"}",
                "0x3000",
            ),
            (
                "windlass_leader{app_kubernetes_io_name=\"windlass\", pod=\"b\"}",
                "0x3000",
            ),
        ],
    ),
    (
        "WindlassReconciliationsFail",
        &[
            (
                "windlass_reconciliations_total{controller=\"bundle-deployment\", outcome=\"failure\"}",
                "0+2x3000",
            ),
            (
                "windlass_reconciliations_total{controller=\"bundle-deployment\", outcome=\"success\"}",
                "0+1x3000",
            ),
        ],
    ),
    (
        "WindlassAPIServerRefuses",
        &[
            (
                "rest_client_requests_total{app_kubernetes_io_name=\"windlass\", method=\"GET\", code=\"<error>\"}",
                "0+1x3000",
            ),
            (
                "rest_client_requests_total{app_kubernetes_io_name=\"windlass\", method=\"GET\", code=\"200\"}",
                "0+5x3000",
            ),
        ],
    ),
    (
        "WindlassClockSkew",
        &[("windlass_clock_ahead_seconds{pod=\"a\"}", "-40x3000")],
    ),
    (
        "WindlassPolicyReviewsFail",
        &[(
            "windlass_policy_review_duration_seconds_count{stage=\"mutate\", outcome=\"failure\"}",
            "0+1x3000",
        )],
    ),
    (
        "WindlassPolicyFails",
        &[(
            "kcloudlabs_policy_error_count{name=\"mirror\", resource_type=\"Pod\", error_type=\"cue_execute_error\"}",
            "0+1x3000",
        )],
    ),
];
