//! What is remembered between two reconciliations. It saves work; losing it is safe.

mod decisions;
mod disarmed;
mod dry_runs;
mod histories;
mod ledgers;
mod loader;
mod proofs;
mod pulls;
mod reported;
mod seats;
mod sufficient;
mod trials;
mod unretained;

pub(super) use decisions::{DecisionOutcome, Decisions, OverrideInputs};
pub(super) use disarmed::Disarmed;
pub(super) use dry_runs::DryRuns;
pub(super) use histories::StorageVersionHistories;
pub(super) use ledgers::{Ledgers, RecordVersions};
pub(super) use loader::{LoadOutcome, Loaded, Loader};
pub(super) use proofs::{Fact, Proofs};
pub(super) use pulls::{PullFailure, PullState, PulledBundle, PulledContent, Pulls};
pub(super) use reported::{Reported, status_of};
pub(super) use seats::Seats;
pub(super) use sufficient::SufficientRights;
pub(super) use trials::{CrdChange, LatestTrial, Trials};
pub(super) use unretained::Unretained;
