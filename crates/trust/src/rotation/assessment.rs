//! The conditions of a ServingCertificate.

use std::fmt;

/// The conditions of a ServingCertificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessments {
    /// Calls through every target verify the served certificates.
    pub trusted: Assessment,
    /// Every ready endpoint serves a valid and trusted certificate.
    pub served: Assessment,
    /// `trusted` and `served` are met, and nothing blocks the next renewal.
    pub ready: Assessment,
}

/// Status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the condition is met.
    pub status: ConditionStatus,
    /// The reason in CamelCase.
    pub reason: Reason,
    /// What the state is, and what to do.
    pub message: String,
}

/// The status of a condition (Kubernetes API conventions, "typical status properties").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// The condition is met.
    True,
    /// The condition is not met.
    False,
    /// The state could not be observed.
    Unknown,
}

/// The reason of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Met; nothing is in progress.
    Current,
    /// Met; a write has not taken effect everywhere yet.
    Updating,
    /// A target carries another trust bundle and is being repaired.
    Untrusted,
    /// Met; another controller repeatedly removes the trust bundle from a target.
    Contested,
    /// Met for all known targets; a kind of targets cannot be listed.
    TargetsUnlisted,
    /// A target rejects the trust bundle.
    Blocked,
    /// The Service does not exist.
    NoService,
    /// The Service has no ready endpoints.
    NoReadyEndpoints,
    /// An endpoint serves a certificate that has expired or is not trusted.
    NotServed,
    /// An endpoint serves, or may serve, a replaced certificate that expires soon. Takes precedence over
    /// other reasons.
    NotReloaded,
    /// The certificate of an endpoint could not be observed.
    Unobservable,
    /// There is no valid serving certificate.
    NotIssued,
    /// Met; the value of `windlass.dev/rotate` is invalid.
    InvalidRequest,
    /// The durations in the spec are invalid.
    InvalidDurations,
}

impl fmt::Display for ConditionStatus {
    /// Writes the status as in a condition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Assessment {
    pub(super) fn met(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::True,
            reason,
            message,
        }
    }

    pub(super) fn unknown(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            reason,
            message,
        }
    }

    pub(super) fn not_met(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::False,
            reason,
            message,
        }
    }
}

impl fmt::Display for Reason {
    /// Writes the reason as in a condition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
