//! The flags of leader election.

use anyhow::bail;
use clap::{ArgAction, Args};
use windlass_cluster::lease::LeaderElectionConfig;
use windlass_object::GoDuration;

/// Settings of leader election, with the defaults of kube-controller-manager; its longer flag names are
/// aliases.
#[derive(Clone, Debug, Args)]
pub struct LeaderElection {
    /// One replica leads, others stand by.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        hide_possible_values = true,
        default_missing_value = "true", help_heading = "Leader election")]
    pub leader_elect: bool,
    /// Others take over after this long without renewal.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "15s",
        alias = "leader-elect-lease-duration",
        help_heading = "Leader election"
    )]
    pub lease_duration: GoDuration,
    /// Leader steps down after this long without renewal.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        alias = "leader-elect-renew-deadline",
        help_heading = "Leader election"
    )]
    pub renew_deadline: GoDuration,
    /// Interval of attempts to acquire or renew the Lease.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2s",
        alias = "leader-elect-retry-period",
        help_heading = "Leader election"
    )]
    pub retry_period: GoDuration,
}

impl LeaderElection {
    /// Returns the timing; `None` without leader election.
    ///
    /// # Errors
    ///
    /// Every inconsistency of the durations, with the flags that cause it.
    pub fn timing(&self) -> anyhow::Result<Option<LeaderElectionConfig>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let (lease, deadline, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let mut problems = Vec::new();
        if lease.0.is_zero() || lease.0.subsec_nanos() != 0 {
            problems.push(format!(
                "--lease-duration {lease} must be whole seconds, at least 1s"
            ));
        }
        if lease <= deadline {
            problems.push(format!(
                "--lease-duration {lease} must be longer than --renew-deadline {deadline}, or two replicas could lead at once"
            ));
        }
        if retry.0.is_zero() {
            problems.push(format!("--retry-period {retry} must be longer than 0s"));
        }
        if deadline.0 < retry.0 * 2 {
            problems.push(format!(
                "--renew-deadline {deadline} must be at least twice --retry-period {retry}, or one failed attempt would end the process"
            ));
        }
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        let plain = |duration: GoDuration| duration.0.unsigned_abs();
        Ok(Some(LeaderElectionConfig {
            lease_duration: plain(lease),
            renew_deadline: plain(deadline),
            retry_period: plain(retry),
        }))
    }

    /// Returns the identity of this candidate: the pod, and a value that distinguishes processes in the same
    /// pod.
    pub fn identity(&self) -> String {
        let pod = ["POD_NAME", "HOSTNAME"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let pod = pod.unwrap_or_else(|| env!("CARGO_PKG_NAME").to_owned());
        format!("{pod}_{:016x}", rand::random::<u64>())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::run;

    fn election(arguments: &[&str]) -> LeaderElection {
        run::Args::parse_from(["run"].iter().chain(arguments)).election
    }

    #[test]
    fn leader_election_is_on_by_default() {
        for (arguments, expected) in [
            (&[][..], true),
            (&["--leader-elect"], true),
            (&["--leader-elect=true"], true),
            (&["--leader-elect=false"], false),
        ] {
            let timing = election(arguments).timing().unwrap();
            assert_eq!(timing.is_some(), expected, "{arguments:?}");
        }
        let one = election(&[]);
        assert_ne!(one.identity(), one.identity());
    }

    #[test]
    fn durations_that_do_not_fit_together_are_refused_with_both_flags() {
        for (arguments, expected) in [
            (
                &["--lease-duration=10s"][..],
                &["--lease-duration 10s", "--renew-deadline 10s"][..],
            ),
            (
                &["--retry-period=6s"],
                &["--renew-deadline 10s", "--retry-period 6s"],
            ),
            (&["--retry-period=0"], &["--retry-period 0s"]),
            (&["--lease-duration=15500ms"], &["whole seconds"]),
            (
                &[
                    "--leader-elect-lease-duration=0",
                    "--leader-elect-retry-period=20s",
                ],
                &[
                    "whole seconds",
                    "--renew-deadline 10s must be at least twice --retry-period 20s",
                ],
            ),
        ] {
            let error = election(arguments).timing().unwrap_err().to_string();
            for part in expected {
                assert!(error.contains(part), "{arguments:?}: {error}");
            }
        }
    }
}
