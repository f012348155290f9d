//! The steps of a plan, each with everything that its execution needs.

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
    /// Write the result of [`CaState::with_change`](crate::rotation::CaState::with_change) to the CA Secret.
    ChangeAuthorities {
        /// The resourceVersion to replace; `None` creates the Secret.
        replacing: Option<String>,
        /// The change of the CAs.
        change: CaChange,
    },
    /// Write the serving Secret.
    PublishServing(Publication),
    /// Write the trust bundle to a target, provided that it is unchanged.
    InjectTarget {
        /// Key of the target.
        target: ObjectKey,
        /// The desired trust bundle.
        bundle: TrustSet,
    },
    /// Restart the pods of a workload, and record the serving certificate in its pod template.
    RestartRollout {
        /// Key of the workload.
        workload: ObjectKey,
        /// The serving certificate that its pods did not load.
        leaf: Fingerprint,
    },
}

/// The desired contents of the serving Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Publication {
    /// The resourceVersion to replace; `None` creates the Secret.
    pub replacing: Option<String>,
    /// The leaf: first certificate of `tls.crt`, and `tls.key`.
    pub leaf: Leaf,
    /// The cross certificate: second certificate of `tls.crt`.
    pub cross: Option<CertificateId>,
    /// `ca.crt`.
    pub bundle: TrustSet,
    /// `olmCAKey`: the CA that signed the leaf.
    pub authority: Option<CertificateId>,
}

/// The origin of the published serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// Keep the current certificate and its key.
    Keep,
    /// Issue a new certificate with a new key.
    Issue {
        /// Key of the CA that signs the certificate.
        by: KeyId,
        /// When the certificate is valid.
        validity: Validity,
    },
}

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

impl fmt::Display for CaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create {
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
            Self::Create { next, .. } => write!(
                f,
                "Created CA {} because the keys of the previous CAs are lost; their certificates stay trusted for now",
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
