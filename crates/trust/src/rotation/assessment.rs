//! What conditions of a ServingCertificate say.

use std::fmt;

/// The conditions of a ServingCertificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessments {
    /// Calls through every target verify what is served.
    pub trusted: Assessment,
    /// Every ready endpoint serves a certificate that is valid and trusted.
    pub served: Assessment,
    /// Both, and nothing is in the way of the next renewal.
    pub ready: Assessment,
}

/// A condition's status, reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Whether it is met.
    pub status: ConditionStatus,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
}

/// What a condition's status says (Kubernetes API conventions, "typical status properties").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It is met.
    True,
    /// It is not met.
    False,
    /// Nobody could look.
    Unknown,
}

/// Why a condition is or is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is met, and nothing is under way.
    Current,
    /// It is met, and a write is still to arrive everywhere.
    Updating,
    /// A target carries another trust bundle, and is being repaired.
    Untrusted,
    /// It is met, and somebody else keeps taking the trust bundle from a target.
    Contested,
    /// It is met as far as can be seen: a kind of targets cannot be listed.
    TargetsUnlisted,
    /// A target refuses the trust bundle.
    Blocked,
    /// There is no Service.
    NoService,
    /// There is no ready endpoint.
    NoReadyEndpoints,
    /// An endpoint serves a certificate that has ended or is not trusted.
    NotServed,
    /// An endpoint serves a certificate of before, or may, and that ends soon. Of several reasons this is the first.
    NotReloaded,
    /// It could not be seen what an endpoint serves.
    Unobservable,
    /// There is no valid serving certificate.
    NotIssued,
    /// It is met, and the value of `windlass.dev/rotate` asks for nothing.
    InvalidRequest,
    /// The durations of the spec do not work.
    InvalidDurations,
}

// === impl ConditionStatus ===

impl fmt::Display for ConditionStatus {
    /// As a condition's status is spelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// === impl Assessment ===

impl Assessment {
    /// It is met.
    pub(super) fn yes(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::True,
            reason,
            message,
        }
    }

    /// Nobody could look.
    pub(super) fn unknown(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            reason,
            message,
        }
    }

    /// It is not met.
    pub(super) fn no(reason: Reason, message: String) -> Self {
        Self {
            status: ConditionStatus::False,
            reason,
            message,
        }
    }
}

// === impl Reason ===

impl fmt::Display for Reason {
    /// As a condition's reason is spelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
