//! On what it is measured: a control plane, how time passes there, and a load.

use std::{fmt, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration};

use clap::Args;
use windlass_object::GoDuration;
use windlass_scenarios::cluster::Access;

/// A server that reads its Secret later than this is restarted by the operator, which would measure something else.
const LONGEST_SECRET_DELAY: Duration = Duration::from_secs(150);

/// On what it is measured.
#[derive(Clone, Debug, Args)]
pub struct Bed {
    /// How long a changed Secret takes to reach a pod, drawn at random for each pod and change. The default is that of
    /// a kubelet.
    #[arg(long, value_name = "MIN..MAX", default_value = "0s..90s")]
    pub secret_delay: Delay,

    /// Factor for that delay and for every wait of the operator.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub time_scale: f64,

    /// Run on the sandbox, the embedded control plane, which needs nothing else.
    #[arg(long)]
    pub sandbox: bool,

    /// The `windlass` program that is measured. Default: the one that is part of this program.
    #[arg(long, value_name = "PROGRAM", env = "E2E_WINDLASS")]
    pub windlass: Option<PathBuf>,

    /// Where it runs. Default: a real etcd, kube-apiserver and kube-controller-manager are started.
    #[command(flatten)]
    pub access: Access,
}

/// A steady load.
#[derive(Clone, Debug, Args)]
pub struct LoadArguments {
    /// Number of requests to send per second, whether or not the previous ones were answered.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub rate: u32,

    /// Number of replicas that serve the webhooks.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub replicas: u32,

    /// Maximum duration of the measurement.
    #[arg(long, default_value = "1h")]
    pub duration: GoDuration,
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

impl Bed {
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

impl fmt::Display for LoadArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rate,
            replicas,
            duration,
        } = self;
        write!(
            f,
            "{rate} requests a second to {replicas} replicas, {duration} at most"
        )
    }
}

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
}
