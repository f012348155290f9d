//! What a reconciliation has at hand: the context, and what is remembered between two of them.

use std::{sync::Arc, time::Duration};

use super::memory::{
    Decisions, Disarmed, DryRuns, Ledgers, Loader, Proofs, Reported, Seats, StorageVersionHistories,
    SufficientRights, Trials, Unretained,
};
use super::{install_traces::InstallTraces, pulling::ImagePuller};
use crate::{announced::Announced, context::Context};

/// Reconciles BundleDeployments.
pub(super) struct BundleReconciler {
    pub(super) context: Arc<Context>,
    pub(super) loader: Loader,
    pub(super) images: Arc<ImagePuller>,
    pub(super) decisions: Decisions,
    pub(super) ledgers: Ledgers,
    pub(super) proofs: Proofs,
    pub(super) seats: Seats,
    pub(super) trials: Trials,
    pub(super) dry_runs: DryRuns,
    pub(super) disarmed: Disarmed,
    pub(super) sufficient: SufficientRights,
    pub(super) unretained: Unretained,
    pub(super) histories: Arc<StorageVersionHistories>,
    pub(super) reported: Arc<Reported>,
    pub(super) announced: Announced,
    pub(super) installs: InstallTraces,
    pub(super) timing: Delays,
}

/// The delays of an install, and the intervals of its checks.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// How long disarmed webhooks are still served, until every API server has observed the change.
    pub disarmed: Duration,
    /// How long an object may still be stored in the version before, after the storage version has moved: until every API
    /// server has heard of it, and has answered what it was asked before.
    pub stored: Duration,
    /// How often to re-check what no watch reports.
    pub recheck: Duration,
    /// How often to look for a first real object, where an invented one proved nothing.
    pub doubtful: Duration,
    /// How often to look where the tag of an image leads.
    pub tags: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            disarmed: Duration::from_secs(10),
            // The same for hearing of it, and a minute, which is how long kube-apiserver works on a request at the most:
            // its --request-timeout. Requests of before are carried out in the version of before (`tearDown` of its
            // `customresource_handler.go` waits for them).
            stored: Duration::from_secs(70),
            recheck: Duration::from_secs(5),
            doubtful: Duration::from_secs(60),
            tags: Duration::from_secs(300),
        }
    }
}
