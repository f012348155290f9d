//! The steps of a plan, each with all that its execution needs.

use std::fmt;

use windlass_object::ObjectKey;

use crate::{
    pki::Validity,
    rotation::{
        ca_state::CaChange,
        certificate::{CertificateId, Fingerprint, KeyId, TrustSet},
    },
};

/// One write to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Write [`CaState::after`](crate::rotation::CaState::after) the change to the CA Secret.
    ChangeAuthorities {
        /// The resourceVersion that the write replaces; without one, the Secret is created.
        replacing: Option<String>,
        /// What becomes of the CAs.
        change: CaChange,
    },
    /// Write the serving Secret.
    PublishServing(Publication),
    /// Give a target the trust bundle, if it still carries what was observed.
    InjectTarget {
        /// The target.
        target: ObjectKey,
        /// What it is to carry.
        bundle: TrustSet,
    },
    /// Restart the pods of a Deployment, StatefulSet or DaemonSet, and note in their template for which serving
    /// certificate.
    RestartRollout {
        /// Whose pods.
        workload: ObjectKey,
        /// The serving certificate that its pods do not read.
        leaf: Fingerprint,
    },
}

/// What the serving Secret is to hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Publication {
    /// The resourceVersion that the write replaces; without one, the Secret is created.
    pub replacing: Option<String>,
    /// The leaf: first in `tls.crt`, and `tls.key`.
    pub leaf: Leaf,
    /// The cross certificate: second in `tls.crt`.
    pub cross: Option<CertificateId>,
    /// `ca.crt`.
    pub bundle: TrustSet,
    /// `olmCAKey`: the CA that signed the leaf.
    pub authority: Option<CertificateId>,
}

/// Where the serving certificate that is published comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// The one that is there, with its key.
    Keep,
    /// A new one, with a new key.
    Issue {
        /// The CA that signs it.
        by: KeyId,
        /// From when until when it is valid.
        validity: Validity,
    },
}

// === impl Step ===

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChangeAuthorities { change, .. } => change.fmt(f),
            Self::PublishServing(publication) => match publication.leaf {
                Leaf::Keep => f.write_str("Published the trust bundle in the serving Secret"),
                Leaf::Issue { validity, .. } => {
                    write!(
                        f,
                        "Issued a serving certificate valid until {}",
                        validity.not_after
                    )
                }
            },
            Self::InjectTarget { target, .. } => write!(f, "Injected the trust bundle into {target}"),
            Self::RestartRollout { workload, .. } => write!(
                f,
                "Restarted {workload} because its pods did not reload the serving certificate"
            ),
        }
    }
}

// === impl CaChange ===

impl fmt::Display for CaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found {
                current: Some((current, _)),
                next,
                ..
            } => {
                write!(
                    f,
                    "Created CA {} and next CA {}",
                    current.generation, next.generation
                )
            }
            Self::Found { next, .. } => write!(
                f,
                "Created CA {} because the keys of the previous CAs are lost; what those signed stays trusted for now",
                next.generation
            ),
            Self::Adopt { .. } => f.write_str("Kept trust in the CA of the certificate being served"),
            Self::StartRotation {
                request, distrusted, ..
            } if distrusted.is_empty() => {
                write!(f, "Started the rotation requested by {request:?}")
            }
            Self::StartRotation { request, .. } => write!(
                f,
                "Started the rotation requested by {request:?}: requests to endpoints that keep serving what a \
                 compromised CA signed will fail once it is retired"
            ),
            Self::IssueNext(next) => write!(f, "Created next CA {}", next.generation),
            Self::RecordPublished { .. } => f.write_str("Recorded that the serving Secret was read back"),
            Self::RecordServed(_) => {
                f.write_str("Recorded that the serving certificate is served everywhere")
            }
            Self::RecordTrust(_) => f.write_str("Recorded how far the next CA is distributed"),
            Self::Promote { cross: Some(_), .. } => f.write_str("Promoted the next CA to sign"),
            Self::Promote { cross: None, .. } => {
                f.write_str("Promoted the next CA to sign, without a cross-certificate of the previous CA")
            }
            Self::Retire { next: Some(next), .. } => {
                write!(
                    f,
                    "Retired the previous CA and created next CA {}",
                    next.generation
                )
            }
            Self::Retire { .. } => f.write_str("Retired a CA that no longer signs anything that is served"),
        }
    }
}
