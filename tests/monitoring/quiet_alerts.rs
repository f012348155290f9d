//! Series with which alerts do not fire, although they are close to it.

/// Series with which no alert fires.
#[derive(Debug)]
pub(crate) struct QuietAlert {
    /// The alert that is close to firing.
    pub(crate) alert: &'static str,
    pub(crate) because: &'static str,
    /// Series with their values per minute.
    pub(crate) series: &'static [(&'static str, &'static str)],
}

/// At least one example per alert.
pub(crate) const QUIET: [QuietAlert; 23] = [
    QuietAlert {
        alert: "WindlassCertificateExpiresSoon",
        because: "the certificate is renewed long before it expires",
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
    QuietAlert {
        alert: "WindlassCertificateExpiresSoon",
        because: "one of two replicas has observed the renewal",
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
    QuietAlert {
        alert: "WindlassCAExpiresSoon",
        because: "the next CA signs no certificates yet",
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
    QuietAlert {
        alert: "WindlassCertificateNotReloaded",
        because: "every server has reloaded the certificate",
        series: &[(
            "windlass_serving_certificate_not_reloaded{namespace=\"n\", name=\"hook\"}",
            "0x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassCertificateNotServed",
        because: "the condition is Unknown",
        series: &[(
            "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Served\", status=\"Unknown\", reason=\"Unobservable\"}",
            "1x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassCertificateNotServed",
        because: "the certificate is served again before the alert fires",
        series: &[(
            "windlass_serving_certificate_condition{namespace=\"n\", name=\"hook\", type=\"Served\", status=\"False\", reason=\"NotServed\"}",
            "1x4 0x3000",
        )],
    },
    QuietAlert {
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
    QuietAlert {
        alert: "WindlassTargetContested",
        because: "the target was overwritten once",
        series: &[(
            "windlass_target_repairs_total{kind=\"APIService\", name=\"a\"}",
            "0 0 1x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassRotationWaits",
        because: "no rotation is in progress",
        series: &[(
            "windlass_serving_certificate_phase{namespace=\"n\", name=\"hook\", phase=\"Stable\"}",
            "1x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassRotationWaits",
        because: "the rotation takes an hour",
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
    QuietAlert {
        alert: "WindlassKindsUnlisted",
        because: "the kind is listed after ten minutes",
        series: &[("windlass_unlisted_kinds{kind=\"v1, Kind=Secret\"}", "1x10 _x3000")],
    },
    QuietAlert {
        alert: "WindlassBundleUnavailable",
        because: "the bundle is not installed yet",
        series: &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Available\", status=\"Unknown\", reason=\"NotInstalled\"}",
            "1x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassBundleNotArmed",
        because: "the bundle has nothing to arm",
        series: &[(
            "windlass_bundle_deployment_condition{name=\"a\", type=\"Armed\", status=\"True\", reason=\"NothingToArm\"}",
            "1x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassBundleNotReady",
        because: "the bundle is paused",
        series: &[
            (
                "windlass_bundle_deployment_condition{name=\"a\", type=\"Ready\", status=\"False\", reason=\"Paused\"}",
                "1x3000",
            ),
            ("windlass_bundle_deployment_paused{name=\"a\"}", "1x3000"),
        ],
    },
    QuietAlert {
        alert: "WindlassBundleNotReady",
        because: "the bundle is ready after half an hour",
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
    QuietAlert {
        alert: "WindlassDown",
        because: "another replica is on standby",
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
    QuietAlert {
        alert: "WindlassNoLeader",
        because: "another replica becomes leader within two minutes",
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
    QuietAlert {
        alert: "WindlassReconciliationsFail",
        because: "only a third of the reconciliations fails",
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
    QuietAlert {
        alert: "WindlassAPIServerRefuses",
        because: "conflicts are expected",
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
    QuietAlert {
        alert: "WindlassAPIServerRefuses",
        because: "the requests are from other clients",
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
    QuietAlert {
        alert: "WindlassClockSkew",
        because: "certificates are back-dated by more than the skew",
        series: &[("windlass_clock_ahead_seconds{pod=\"a\"}", "-29x3000")],
    },
    QuietAlert {
        alert: "WindlassPolicyReviewsFail",
        because: "a denial is a successful review",
        series: &[(
            "windlass_policy_review_duration_seconds_count{stage=\"validate\", outcome=\"denied\"}",
            "0+1x3000",
        )],
    },
    QuietAlert {
        alert: "WindlassPolicyFails",
        because: "the last failure was long ago",
        series: &[(
            "kcloudlabs_policy_error_count{name=\"mirror\", resource_type=\"Pod\", error_type=\"cue_execute_error\"}",
            "5x3000",
        )],
    },
];
