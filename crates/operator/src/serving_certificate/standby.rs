//! Repairs by a process that stands by: between a leader that was killed and the next, nobody else would give targets back
//! what somebody takes from them.
//!
//! Leadership decides what is issued. What targets are to carry is recorded in Secrets, which are read anew from the API
//! server for each of these repairs, and a target is written only where it still carries what was seen. So this is one
//! more writer whose last write may be late, and a rotation bears that from any process that was cut off.

use std::{sync::Arc, time::Duration};

use windlass_cluster::{
    Change,
    lease::Leadership,
    worker::{Action, Queue},
};

use super::{error::ServingCertificateError, reconciler::CertificateReconciler, repair::Repair};

/// How long a leader has to repair what was changed, before one that stands by does.
const CHANGED: Duration = Duration::from_millis(250);

/// How long a leader has for what was created: it may be about to be given its first trust bundle.
const CREATED: Duration = Duration::from_secs(2);

/// What may have to be repaired by a process that stands by.
#[derive(Clone)]
pub(super) struct StandbyRepairs {
    queue: Arc<Queue<Repair>>,
    leadership: Leadership,
}

// === impl StandbyRepairs ===

impl StandbyRepairs {
    /// Nothing yet. Whether this process stands by is what `leadership` says.
    pub(super) fn new(leadership: Leadership) -> Self {
        let queue = Arc::default();
        Self { queue, leadership }
    }

    /// What is to be worked on.
    pub(super) fn queue(&self) -> Arc<Queue<Repair>> {
        self.queue.clone()
    }

    /// Notes a target that `change` is about, unless this process leads.
    pub(super) fn add(&self, repair: &Repair, change: &Change) {
        let patience = match (&change.before, &change.after) {
            (Some(_), Some(_)) => CHANGED,
            (None, Some(_)) => CREATED,
            (_, None) => return,
        };
        if self.leadership.check().is_err() {
            self.queue.add_after(repair.clone(), patience);
        }
    }

    /// Repairs a target, unless this process has come to lead: then it does so anyway.
    pub(super) async fn repair(
        self,
        reconciler: Arc<CertificateReconciler>,
        repair: Repair,
    ) -> Result<Action, ServingCertificateError> {
        if self.leadership.check().is_ok() {
            return Ok(Action::AwaitChange);
        }
        if !reconciler.is_repair_due(&repair).await? {
            return Ok(Action::AwaitChange);
        }
        // A watch may be late, and late by more than one rotation.
        reconciler.secrets.forget(&repair.certificate);
        reconciler.repair(repair).await
    }
}
