//! What a reconciliation has: the context, and what is remembered between two of them.

use std::sync::Arc;

use parking_lot::Mutex;
use windlass_cluster::lease::LeaderSince;
use windlass_trust::{objects::CertificateStore, rotation::Timing};

use super::{
    history::Histories, neighbours::Neighbours, obstacles::Obstacles, rotation_traces::RotationTraces,
    secrets::KnownSecrets, turns::DialTurns,
};
use crate::{context::Context, reporting::Announced};

/// Reconciles ServingCertificates.
pub(super) struct CertificateReconciler {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) histories: Histories,
    pub(super) turns: DialTurns,
    pub(super) obstacles: Obstacles,
    pub(super) secrets: KnownSecrets,
    pub(super) neighbours: Neighbours,
    pub(super) announced: Announced,
    pub(super) rotations: RotationTraces,
    /// What the CA bundles say that repairs have looked at.
    pub(super) bundles: Mutex<CertificateStore>,
    /// Tells the marks of this process from those of others.
    pub(super) run: u64,
    /// Waits count from then.
    pub(super) since: LeaderSince,
}
