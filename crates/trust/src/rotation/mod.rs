//! Rotation as a pure function from an observation to the steps that are safe now.
//!
//! ```text
//!             promote next                every endpoint on it          targets read back
//! Stable {A,B} ----------> Signing {A,B} --------------------> Retiring {B,C} ---------> Stable {B,C}
//!      \                        ^
//!       `-> Distributing -------'     no next CA that is known everywhere: keys lost, compromised, a new duration
//! ```
//!
//! The trust bundle is always one CA ahead: the next CA is trusted for months before it signs. So a rotation
//! needs no wait and writes each target once. Trust before use, use before retire.
//!
//! # Certificates are digests here
//!
//! An observation holds only a [`CertificateId`] of each certificate: its fingerprint, its key, the key that
//! signed it, and its validity. The executor of a step finds the certificate by its fingerprint
//! ([`CertificateStore`](crate::objects::CertificateStore)). This is intentional: the input of a plan is
//! small, `Copy` and comparable, so `tests/exhaustive.rs` can explore every interleaving of steps, crashes,
//! lag, foreign edits and clock jumps without generating keys.

mod assessment;
mod blocked;
mod ca_state;
mod certificate;
mod change;
mod clock;
mod conditions;
mod endpoint_counts;
mod endpoints;
mod observation;
mod publication;
mod repair_limiter;
mod report;
mod request;
mod rotation_plan;
mod situation;
mod step;
#[cfg(test)]
mod tests;
mod timing;

pub use self::{
    assessment::{Assessment, Assessments, ConditionStatus, Reason},
    blocked::Blocked,
    ca_state::{Ca, CaChange, CaState, CaTemplate, Issuer, Published, Trust},
    certificate::{CertificateId, Chain, Digest, Fingerprint, KeyId, ParseDigestError, TrustSet},
    clock::{ClockReading, Mark},
    endpoint_counts::EndpointCounts,
    observation::{
        Observation, ObservedEndpoint, ObservedService, ObservedWorkload, PublishedSecret, Target, Versioned,
        blocks_rotation,
    },
    repair_limiter::{Contested, RepairLimiter},
    report::RotationPhase,
    request::{ManualRotation, ParseRequestError},
    step::{Leaf, Publication, Step},
    timing::{Timing, TimingProblem},
};
pub use rotation_plan::{RotationPlan, has_regressed, plan, repairs};
