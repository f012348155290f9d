//! The reconciler of ServingCertificates, with what it remembers between reconciliations.

use std::sync::Arc;

use parking_lot::Mutex;
use windlass_cluster::lease::LeaderSince;
use windlass_trust::{objects::CertificateStore, rotation::Timing};

use super::{
    history::Histories, obstacle_backoff::ObstacleBackoff, other_installs::OtherInstalls,
    probe_schedule::ProbeSchedule, rotation_traces::RotationTraces, secrets::KnownSecrets,
};
use crate::{announced::Announced, context::Context};

/// Reconciles ServingCertificates.
pub(super) struct CertificateReconciler {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) histories: Histories,
    pub(super) probe_schedule: ProbeSchedule,
    pub(super) obstacle_backoff: ObstacleBackoff,
    pub(super) secrets: KnownSecrets,
    pub(super) other_installs: OtherInstalls,
    pub(super) announced: Announced,
    pub(super) rotations: RotationTraces,
    /// Parsed CA bundles of the targets that repairs have read.
    pub(super) bundles: Mutex<CertificateStore>,
    /// Distinguishes the marks of this process from those of others.
    pub(super) run: u64,
    /// Start of the monotonic clock.
    pub(super) since: LeaderSince,
}
