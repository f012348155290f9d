//! Tests of leader election: its decisions one by one, several replicas against one Lease, the shell, the fence.

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

/// So many milliseconds after both clocks began.
fn at(milliseconds: u64) -> Moment {
    let start = Moment {
        since_boot: Duration::ZERO,
        wall: Timestamp::from_second(1_800_000_000).unwrap(),
    };
    start.after(Duration::from_millis(milliseconds))
}
