//! What is remembered between two reconciliations. It saves work; losing it is safe.

mod disarmed;
mod histories;
mod ledgers;
mod loader;
mod proofs;
mod trials;

pub(super) use disarmed::Disarmed;
pub(super) use histories::StorageVersionHistories;
pub(super) use ledgers::{Ledgers, RecordVersions};
pub(super) use loader::{Loaded, Loader};
pub(super) use proofs::{Fact, Proofs};
pub(super) use trials::{CrdChange, LatestTrial, Trials};
