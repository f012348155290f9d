//! The command line.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use clap::Parser;
use windlass_object::GoDuration;
use windlass_scenarios::cluster::Access;

/// A server that reads its Secret later than this is restarted by the operator, which would measure something else.
const LONGEST_SECRET_DELAY: Duration = Duration::from_secs(150);

/// Measures what rotations under load, storage migration, or idleness cost on a real control plane.
///
/// Installs the sample bundle with its validating, mutating and conversion webhooks, sends requests through all three
/// at a steady rate, renews the serving certificate and rotates the CA, and prints a table. Exits 1 if a request
/// failed, a target was written more than once per rotation, or the time ran out.
#[derive(Clone, Debug, Parser)]
#[command(name = "e2e/soak", version)]
pub struct Arguments {
    /// Number of CA rotations, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rotations: u32,

    /// Number of renewals of the serving certificate before the CA rotations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub leaf_rotations: u32,

    /// Minimum number of requests to send; if the rotations are done earlier, the rest is sent after them.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub requests: u64,

    /// Number of requests to send per second, whether or not the previous ones were answered.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub rate: u32,

    /// Number of replicas that serve the webhooks.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub replicas: u32,

    /// How long a changed Secret takes to reach a pod, drawn at random for each pod and change. The default is that of
    /// a kubelet.
    #[arg(long, value_name = "MIN..MAX", default_value = "0s..90s")]
    pub secret_delay: Delay,

    /// Factor for that delay and for every wait of the operator.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub time_scale: f64,

    /// Maximum duration of the measurement.
    #[arg(long, default_value = "1h")]
    pub duration: GoDuration,

    /// Measure idleness instead: wait until all ServingCertificates are stable, then count the operator's requests
    /// while nothing happens. Exits 1 if it wrote anything.
    #[arg(long, conflicts_with_all = ["rotations", "leaf_rotations", "requests", "rate", "secret_delay"])]
    pub idle: bool,

    /// Duration of the idle phase.
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "idle")]
    pub idle_for: GoDuration,

    /// Number of ServingCertificates during the idle phase.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "idle")]
    pub certificates: u32,

    /// Measure memory and start instead, beside so many CustomResourceDefinitions of 200 kB and ten times as many Secrets of
    /// 10 kB: how soon a target has its trust bundle, and how much memory the operator needs.
    #[arg(long, value_name = "N", conflicts_with_all = ["rotations", "leaf_rotations", "requests", "rate", "secret_delay", "idle", "migrate"], value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub crowd: Option<u32>,

    /// Measure a storage migration instead: store this many objects, upgrade to a new storage version under load, and
    /// wait until all of them are rewritten. Exits 1 if an object is lost, changed, or still stored in the old version,
    /// if the migration restarted from the beginning after a kill, or if a request failed.
    #[arg(long, value_name = "N", conflicts_with_all = ["rotations", "leaf_rotations", "requests", "secret_delay", "idle"], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub migrate: Option<u32>,

    /// How often to kill and restart the operator during the migration, with equally many objects between two kills.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=20), requires = "migrate")]
    pub kills: u32,

    /// Run on the sandbox, the embedded control plane, which needs nothing else.
    #[arg(long)]
    pub sandbox: bool,

    /// Print what would be done, without doing it.
    #[arg(long)]
    pub plan: bool,

    /// Where it runs. Default: a real etcd, kube-apiserver and kube-controller-manager are started.
    #[command(flatten)]
    pub access: Access,
}

/// A range of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    least: Duration,
    most: Duration,
}

/// Why a text is no range of durations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDelayError {
    /// It does not say from when to when.
    #[error("must be MIN..MAX, for example 0s..90s")]
    Form,
    /// The end comes before the start.
    #[error("{least:?} is longer than {most:?}")]
    Empty {
        /// The start.
        least: Duration,
        /// The end.
        most: Duration,
    },
    /// The operator would not wait for it.
    #[error(
        "{most:?} is too long: the operator restarts a server that does not read a changed Secret for 180 s, so use {LONGEST_SECRET_DELAY:?} at most"
    )]
    TooLong {
        /// The end.
        most: Duration,
    },
}

// === impl Arguments ===

impl Arguments {
    /// How long a changed Secret takes to reach a pod, as it is measured here.
    pub(super) fn scaled_delay(&self) -> RangeInclusive<Duration> {
        let scaled = |delay: Duration| delay.mul_f64(self.time_scale);
        scaled(self.secret_delay.least)..=scaled(self.secret_delay.most)
    }

    /// How long one rotation may take: the longest delay of a Secret, and every wait of a rotation, twice, and then some.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(600).mul_f64(self.time_scale) + Duration::from_secs(60)
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.idle {
            let Self {
                certificates,
                idle_for,
                ..
            } = self;
            return write!(f, "{certificates} ServingCertificates, idle for {idle_for}");
        }
        if let Some(definitions) = self.crowd {
            return write!(
                f,
                "{definitions} CustomResourceDefinitions of 200 kB, and ten times as many Secrets of 10 kB"
            );
        }
        if let Some(objects) = self.migrate {
            let Self {
                rate,
                replicas,
                kills,
                duration,
                ..
            } = self;
            return write!(
                f,
                "{objects} stored objects are rewritten while {rate} requests a second are sent to {replicas} replicas and \
                 the operator is killed {kills} times; every wait of the operator is multiplied by {}; {duration} at most",
                self.time_scale,
            );
        }
        let Self {
            rotations,
            leaf_rotations,
            requests,
            rate,
            replicas,
            duration,
            ..
        } = self;
        let delay = self.scaled_delay();
        write!(
            f,
            "{requests} requests or more, {rate} a second, to {replicas} replicas; {leaf_rotations} renewals of the serving \
             certificate and {rotations} CA rotations; a Secret takes {} s to {} s to a pod, and every wait of the operator \
             is multiplied by {}; {duration} at most",
            delay.start().as_secs_f64(),
            delay.end().as_secs_f64(),
            self.time_scale,
        )
    }
}

// === impl Delay ===

impl FromStr for Delay {
    type Err = ParseDelayError;

    fn from_str(text: &str) -> Result<Self, ParseDelayError> {
        let (least, most) = text.split_once("..").ok_or(ParseDelayError::Form)?;
        let duration = |text: &str| match text.parse() {
            Ok(GoDuration(duration)) => Ok(duration.unsigned_abs()),
            Err(_) => Err(ParseDelayError::Form),
        };
        let (least, most) = (duration(least)?, duration(most)?);
        if least > most {
            return Err(ParseDelayError::Empty { least, most });
        }
        if most > LONGEST_SECRET_DELAY {
            return Err(ParseDelayError::TooLong { most });
        }
        Ok(Self { least, most })
    }
}

/// How much faster than written time may pass: the servers look at their files five times a second, whatever is said here.
fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.01..=1.0).contains(&factor) => Ok(factor),
        _ => Err("must be a number from 0.01 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_or_refused_for_a_reason() {
        let second = Duration::from_secs(1);
        assert_eq!(
            "1s..90s".parse(),
            Ok(Delay {
                least: second,
                most: second * 90
            })
        );
        for (text, problem) in [
            ("90s", "MIN..MAX"),
            ("1..2", "MIN..MAX"),
            ("2s..1s", "2s is longer than 1s"),
            ("0s..10m", "600s is too long"),
        ] {
            let error = text.parse::<Delay>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn the_delay_of_secrets_is_scaled_as_the_waits_of_the_operator_are() {
        let arguments = Arguments::parse_from(["soak", "--time-scale", "0.1"]);
        assert_eq!(arguments.scaled_delay(), Duration::ZERO..=Duration::from_secs(9));
    }

    #[test]
    fn idleness_has_no_rotations() {
        assert!(Arguments::try_parse_from(["soak", "--idle", "--rotations", "3"]).is_err());
        assert!(Arguments::try_parse_from(["soak", "--certificates", "3"]).is_err());
    }

    #[test]
    fn a_crowd_is_measured_alone() {
        for other in [&["--idle"][..], &["--migrate", "5"], &["--rotations", "3"]] {
            let arguments = [&["soak", "--crowd", "5"], other].concat();
            assert!(Arguments::try_parse_from(arguments).is_err(), "{other:?}");
        }
        let arguments = Arguments::parse_from(["soak", "--crowd", "5"]);
        assert!(arguments.to_string().starts_with("5 CustomResourceDefinitions"));
    }

    #[test]
    fn a_migration_has_neither_rotations_nor_idleness() {
        for arguments in [
            &["soak", "--migrate", "5", "--rotations", "3"][..],
            &["soak", "--migrate", "5", "--idle"],
            &["soak", "--migrate", "0"],
            &["soak", "--kills", "2"],
        ] {
            assert!(Arguments::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
        assert!(Arguments::try_parse_from(["soak", "--migrate", "5", "--kills", "2"]).is_ok());
    }
}
