//! The leadership of this process.

use std::time::Duration;

use thiserror::Error;
use tokio::{sync::watch, time::Instant};

use super::Moment;

/// A leader and the end of its term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderTerm {
    /// The leader.
    pub holder: String,
    /// The end of the term, if it is not renewed.
    pub expiry: Moment,
}

/// The leadership of this process.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// `None`: there is no election.
    election: Option<Election>,
}

#[derive(Clone, Debug)]
struct Election {
    identity: String,
    claims: watch::Receiver<Option<LeaderTerm>>,
}

/// When this process became leader, on its steady clock.
///
/// Only [`Leadership::wait_until_acquired`] creates it: delays that protect against late writes of a previous leader are
/// measured from then, not from the start of a process that may have been on standby for hours.
#[derive(Clone, Copy, Debug)]
pub struct LeaderSince(Instant);

/// A write was suppressed because this process does not lead. It does not depend on what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write suppressed: not the leader")]
pub struct NotLeading;

impl LeaderTerm {
    /// Reports whether `identity` leads at `now`.
    pub fn is_current_for(&self, identity: &str, now: Moment) -> bool {
        self.holder == identity && !self.expiry.has_passed(now)
    }
}

impl Leadership {
    /// Leads without an election.
    pub fn always() -> Self {
        Self { election: None }
    }

    /// Follows the latest of `claims` for `identity`.
    pub(crate) fn elected(identity: String, claims: watch::Receiver<Option<LeaderTerm>>) -> Self {
        Self {
            election: Some(Election { identity, claims }),
        }
    }

    /// Checks that this process leads now.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn check(&self) -> Result<(), NotLeading> {
        let Some(election) = &self.election else {
            return Ok(());
        };
        let claim = election.claims.borrow();
        // Read last, so that delays of this function count.
        match &*claim {
            Some(claim) if claim.is_current_for(&election.identity, Moment::now()) => Ok(()),
            _ => Err(NotLeading),
        }
    }

    /// Waits until this process becomes leader.
    pub async fn wait_until_acquired(&self) -> LeaderSince {
        if let Some(election) = &self.election {
            let mut claims = election.claims.clone();
            if claims.wait_for(Option::is_some).await.is_err() {
                // The elector has stopped.
                std::future::pending::<()>().await;
            }
        }
        LeaderSince(Instant::now())
    }
}

impl LeaderSince {
    /// Returns how long this process has led.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl NotLeading {
    /// Reports whether `error` was caused by missing leadership.
    pub fn is_cause_of(error: &(dyn std::error::Error + 'static)) -> bool {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        causes.any(<dyn std::error::Error>::is::<Self>)
    }
}
