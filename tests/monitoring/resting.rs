//! When alerts do not fire, though it is close.

/// Series at which no alert fires.
#[derive(Debug)]
pub(crate) struct Resting {
    /// That could.
    pub(crate) alert: &'static str,
    pub(crate) because: &'static str,
    /// With a value a minute.
    pub(crate) series: &'static [(&'static str, &'static str)],
}

/// For each alert.
pub(crate) const RESTING: [Resting; 23] = [
    Resting {
        alert: "WindlassCertificateExpiresSoon",
        because: "it is renewed long before its end",
        series: &[
            (
                "windlass_serving_certificate_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\"}",
                "200000x3000",
            ),
            (
                "windlass_serving_certificate_renewal_timestamp_seconds{namespace=\"n\", name=\"hook\"}",
                "197000x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassCertificateExpiresSoon",
        because: "of two replicas one has seen that it was renewed",
        series: &[
            (
                "windlass_serving_certificate_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\", pod=\"a\"}",
                "200000x3000",
            ),
            (
                "windlass_serving_certificate_renewal_timestamp_seconds{namespace=\"n\", name=\"hook\", pod=\"a\"}",
                "197000x3000",
            ),
            (
                "windlass_serving_certificate_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\", pod=\"b\"}",
                "200000x3000",
            ),
            (
                "windlass_serving_certificate_renewal_timestamp_seconds{namespace=\"n\", name=\"hook\", pod=\"b\"}",
                "197000x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassCAExpiresSoon",
        because: "the next CA signs nothing yet",
        series: &[
            (
                "windlass_serving_certificate_ca_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\", ca=\"current\"}",
                "200000x3000",
            ),
            (
                "windlass_serving_certificate_ca_expiration_timestamp_seconds{namespace=\"n\", name=\"hook\", ca=\"next\"}",
                "9000x3000",
            ),
            (
                "windlass_serving_certificate_ca_renewal_timestamp_seconds{namespace=\"n\", name=\"hook\"}",
                "197000x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassCertificateNotReloaded",
        because: "every server has reloaded it",
        series: &[(
            "windlass_serving_certificate_not_reloaded{namespace=\"n\", name=\"hook\"}",
            "0x3000",
        )],
    },
    Resting {
        alert: "WindlassCertificateNotServed",
        because: "nobody can say",
        series: &[(
            "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Served\", status=\"Unknown\", reason=\"Unobservable\"}",
            "1x3000",
        )],
    },
    Resting {
        alert: "WindlassCertificateNotServed",
        because: "it is served again before anybody is woken",
        series: &[(
            "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Served\", status=\"False\", reason=\"NotServed\"}",
            "1x4 0x3000",
        )],
    },
    Resting {
        alert: "WindlassCertificateNotTrusted",
        because: "another condition is False",
        series: &[
            (
                "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Ready\", status=\"False\", reason=\"Blocked\"}",
                "1x3000",
            ),
            (
                "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Trusted\", status=\"True\", reason=\"Trusted\"}",
                "1x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassTargetContested",
        because: "it was overwritten once",
        series: &[(
            "windlass_target_repairs_total{kind=\"APIService\", name=\"a\"}",
            "0 0 1x3000",
        )],
    },
    Resting {
        alert: "WindlassRotationWaits",
        because: "no rotation is under way",
        series: &[(
            "windlass_serving_certificate_phase{namespace=\"n\", name=\"hook\", phase=\"Stable\"}",
            "1x3000",
        )],
    },
    Resting {
        alert: "WindlassRotationWaits",
        because: "it takes an hour",
        series: &[
            (
                "windlass_serving_certificate_phase{namespace=\"n\", name=\"hook\", phase=\"Signing\"}",
                "1x60 _x3000",
            ),
            (
                "windlass_serving_certificate_phase{namespace=\"n\", name=\"hook\", phase=\"Stable\"}",
                "_x60 1x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassKindsUnlisted",
        because: "it is listed after ten minutes",
        series: &[("windlass_unlisted_kinds{kind=\"v1, Kind=Secret\"}", "1x10 _x3000")],
    },
    Resting {
        alert: "WindlassBundleUnavailable",
        because: "it is not installed yet",
        series: &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Available\", status=\"Unknown\", reason=\"NotInstalled\"}",
            "1x3000",
        )],
    },
    Resting {
        alert: "WindlassBundleNotArmed",
        because: "nothing is to be armed",
        series: &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Armed\", status=\"True\", reason=\"NothingToArm\"}",
            "1x3000",
        )],
    },
    Resting {
        alert: "WindlassBundleNotReady",
        because: "somebody has paused it",
        series: &[
            (
                "windlass_bundle_deployment_condition{name=\"a\", type=\"Ready\", status=\"False\", reason=\"Paused\"}",
                "1x3000",
            ),
            ("windlass_bundle_deployment_paused{name=\"a\"}", "1x3000"),
        ],
    },
    Resting {
        alert: "WindlassBundleNotReady",
        because: "it is ready after half an hour",
        series: &[
            (
                "windlass_bundle_deployment_condition{name=\"a\", type=\"Ready\", status=\"False\", reason=\"Waiting\"}",
                "1x30 _x3000",
            ),
            (
                "windlass_bundle_deployment_condition{name=\"a\", type=\"Ready\", status=\"True\", reason=\"Ready\"}",
                "_x30 1x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassDown",
        because: "a replica stands by",
        series: &[
            (
                "windlass_leader{app_kubernetes_io_name=\"windlass\", pod=\"a\"}",
                "0x3000",
            ),
            (
                "windlass_leader{app_kubernetes_io_name=\"windlass\", pod=\"b\"}",
                "1x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassNoLeader",
        because: "another takes over in two minutes",
        series: &[
            (
                "windlass_leader{app_kubernetes_io_name=\"windlass\", pod=\"a\"}",
                "1x60 0x3000",
            ),
            (
                "windlass_leader{app_kubernetes_io_name=\"windlass\", pod=\"b\"}",
                "0x62 1x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassReconciliationsFail",
        because: "a third of them fails",
        series: &[
            (
                "windlass_reconciliations_total{controller=\"bundle-deployment\", outcome=\"failure\"}",
                "0+1x3000",
            ),
            (
                "windlass_reconciliations_total{controller=\"bundle-deployment\", outcome=\"success\"}",
                "0+2x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassAPIServerRefuses",
        because: "conflicts are nothing to worry about",
        series: &[
            (
                "rest_client_requests_total{app_kubernetes_io_name=\"windlass\", method=\"PATCH\", code=\"409\"}",
                "0+5x3000",
            ),
            (
                "rest_client_requests_total{app_kubernetes_io_name=\"windlass\", method=\"GET\", code=\"200\"}",
                "0+5x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassAPIServerRefuses",
        because: "those of others are not ours",
        series: &[
            (
                "rest_client_requests_total{app_kubernetes_io_name=\"other\", method=\"GET\", code=\"500\"}",
                "0+5x3000",
            ),
            (
                "rest_client_requests_total{app_kubernetes_io_name=\"windlass\", method=\"GET\", code=\"200\"}",
                "0+5x3000",
            ),
        ],
    },
    Resting {
        alert: "WindlassClockSkew",
        because: "certificates are back-dated by more",
        series: &[("windlass_clock_ahead_seconds{pod=\"a\"}", "-29x3000")],
    },
    Resting {
        alert: "WindlassPolicyReviewsFail",
        because: "what is denied is answered",
        series: &[(
            "windlass_policy_review_duration_seconds_count{stage=\"validate\", outcome=\"denied\"}",
            "0+1x3000",
        )],
    },
    Resting {
        alert: "WindlassPolicyFails",
        because: "it has failed long ago",
        series: &[(
            "kcloudlabs_policy_error_count{name=\"mirror\", resource_type=\"Pod\", error_type=\"cue_execute_error\"}",
            "5x3000",
        )],
    },
];
