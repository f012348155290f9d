//! What is remembered between two reconciliations. It saves work; losing it is safe.

mod disarmed;
mod histories;
mod loader;
mod proofs;
mod seats;
mod trials;

pub(super) use disarmed::Disarmed;
pub(super) use histories::StorageVersionHistories;
pub(super) use loader::{Loaded, Loader};
pub(super) use proofs::{Fact, Proofs};
pub(super) use seats::Seats;
pub(super) use trials::{CrdChange, LatestTrial, Trials};
