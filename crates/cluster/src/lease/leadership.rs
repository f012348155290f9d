//! Whether this process leads, for whoever has to know.

use std::time::Duration;

use thiserror::Error;
use tokio::{sync::watch, time::Instant};

use super::Moment;

/// A statement of who leads, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderTerm {
    /// Who.
    pub holder: String,
    /// Until when, if it is not renewed.
    pub expiry: Moment,
}

/// Tells whether this process leads.
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

/// Since when this process has led, on its steady clock.
///
/// Only [`Leadership::acquired`] makes one: a wait for what an earlier leader may have done just before counts from here,
/// and never from the start of a process that stood by for hours.
#[derive(Clone, Copy, Debug)]
pub struct LeaderSince(Instant);

/// A write was held back, because this process does not lead (any more). It says nothing about what was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write suppressed: not the leader")]
pub struct NotLeading;

// === impl LeaderTerm ===

impl LeaderTerm {
    /// Whether `identity` leads at `now`.
    pub fn is_current_for(&self, identity: &str, now: Moment) -> bool {
        self.holder == identity && !self.expiry.has_passed(now)
    }
}

// === impl Leadership ===

impl Leadership {
    /// Without an election: this process leads.
    pub fn always() -> Self {
        Self { election: None }
    }

    /// As the last of `claims` says about `identity`.
    pub(crate) fn elected(identity: String, claims: watch::Receiver<Option<LeaderTerm>>) -> Self {
        Self {
            election: Some(Election { identity, claims }),
        }
    }

    /// Whether this process leads at this moment.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn check(&self) -> Result<(), NotLeading> {
        let Some(election) = &self.election else {
            return Ok(());
        };
        let claim = election.claims.borrow();
        // The clock is read last: whatever held this up counts.
        match &*claim {
            Some(claim) if claim.is_current_for(&election.identity, Moment::now()) => Ok(()),
            _ => Err(NotLeading),
        }
    }

    /// Waits until this process leads for the first time.
    pub async fn acquired(&self) -> LeaderSince {
        if let Some(election) = &self.election {
            let mut claims = election.claims.clone();
            if claims.wait_for(Option::is_some).await.is_err() {
                // Nobody stands for election any more.
                std::future::pending::<()>().await;
            }
        }
        LeaderSince(Instant::now())
    }
}

// === impl LeaderSince ===

impl LeaderSince {
    /// How long this process has led.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

// === impl NotLeading ===

impl NotLeading {
    /// Whether this is what caused `error`.
    pub fn is_cause_of(error: &(dyn std::error::Error + 'static)) -> bool {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        causes.any(<dyn std::error::Error>::is::<Self>)
    }
}
