//! Tests of leader election: single decisions, several replicas with one Lease, the elector, and the fence.

mod decisions;
mod fence;
mod replicas;
mod shell;

use std::time::Duration;

use jiff::Timestamp;

use super::{LeaderElectionConfig, Moment};

const TIMING: LeaderElectionConfig = LeaderElectionConfig {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// The time `milliseconds` after both clocks started.
fn at(milliseconds: u64) -> Moment {
    let start = Moment {
        since_boot: Duration::ZERO,
        wall: Timestamp::from_second(1_800_000_000).unwrap(),
    };
    start.after(Duration::from_millis(milliseconds))
}
