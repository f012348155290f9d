//! Rotation as a pure function: what was observed goes in, the steps that are safe now come out.
//!
//! ```text
//!             promote next                every endpoint on it          targets read back
//! Stable {A,B} ----------> Signing {A,B} --------------------> Retiring {B,C} ---------> Stable {B,C}
//!      \                        ^
//!       `-> Distributing -------'     no next CA that is known everywhere: keys lost, compromised, a new duration
//! ```
//!
//! The trust bundle is always one CA ahead: the next CA is trusted for months before it signs, so a rotation waits for
//! nothing, and writes each target once. Trust before use, use before retire.
//!
//! # Certificates are digests here
//!
//! An observation holds no certificate but a [`CertificateId`] of each: its fingerprint, whose key it holds, whose key
//! signed it, and until when. Whoever executes a step looks the certificate up again by its fingerprint
//! ([`CertificateStore`](crate::objects::CertificateStore)). That is the one way down and up again, and it is on purpose:
//! what a plan is made from is small, `Copy` and comparable, so `tests/exhaustive.rs` can walk every interleaving of
//! steps, crashes, lag, foreign edits and clock jumps without making a key.

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
        is_waited_for,
    },
    repair_limiter::{Contested, RepairLimiter},
    report::RotationPhase,
    request::{ManualRotation, ParseRequestError},
    step::{Leaf, Publication, Step},
    timing::{Timing, TimingProblem},
};
pub use rotation_plan::{RotationPlan, has_regressed, plan, repairs};
