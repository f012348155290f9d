//! The command line.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand};
use windlass_object::GoDuration;
use windlass_scenarios::cluster::Access;

use super::{
    blind::BlindArguments, crowd::CrowdArguments, flood::FloodArguments, idle::IdleArguments,
    migration::MigrationArguments, nights::NightArguments, repairs::RepairArguments,
    rotations::RotationArguments,
};

/// A server that reads its Secret later than this is restarted by the operator, which would measure something else.
const LONGEST_SECRET_DELAY: Duration = Duration::from_secs(150);

/// Measures what Windlass does and costs, on a real control plane.
///
/// Prints a table. Exits 1 if a request failed, or something else was missed that the measurement asks for.
#[derive(Clone, Debug, Parser)]
#[command(name = "e2e/soak", version)]
pub struct Arguments {
    /// What is measured.
    #[command(subcommand)]
    pub subject: MeasuredSubject,

    /// On what it is measured.
    #[command(flatten)]
    pub bed: Bed,

    /// Print what would be done, without doing it.
    #[arg(long)]
    pub plan: bool,
}

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
pub enum MeasuredSubject {
    /// Rotations under a steady load of requests to the webhooks of the sample bundle.
    Rotations(RotationArguments),
    /// How soon targets are repaired, beside many others and all at once.
    Repairs(RepairArguments),
    /// Rotations while leaders are killed or clocks step, and somebody takes trust bundles away.
    Nights(NightArguments),
    /// Rotations while the operator cannot dial a pod that never reloads its certificate.
    Blind(BlindArguments),
    /// The operator's requests while nothing happens.
    Idle(IdleArguments),
    /// Memory and start beside many large objects.
    Crowd(CrowdArguments),
    /// Tenants who send very much, beside rotations and repairs.
    Flood(FloodArguments),
    /// A storage migration under load.
    Migration(MigrationArguments),
}

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

// === impl Arguments ===

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            MeasuredSubject::Rotations(rotations) => rotations.fmt(f)?,
            MeasuredSubject::Repairs(repairs) => repairs.fmt(f)?,
            MeasuredSubject::Nights(nights) => nights.fmt(f)?,
            MeasuredSubject::Blind(blind) => blind.fmt(f)?,
            MeasuredSubject::Idle(idle) => idle.fmt(f)?,
            MeasuredSubject::Crowd(crowd) => crowd.fmt(f)?,
            MeasuredSubject::Flood(flood) => flood.fmt(f)?,
            MeasuredSubject::Migration(migration) => migration.fmt(f)?,
        }
        let delay = self.bed.scaled_delay();
        write!(
            f,
            "; a Secret takes {} s to {} s to a pod, and every wait of the operator is multiplied by {}",
            delay.start().as_secs_f64(),
            delay.end().as_secs_f64(),
            self.bed.time_scale
        )
    }
}

// === impl Bed ===

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

// === impl LoadArguments ===

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
        let arguments = Arguments::parse_from(["soak", "--time-scale", "0.1", "rotations"]);
        assert_eq!(
            arguments.bed.scaled_delay(),
            Duration::ZERO..=Duration::from_secs(9)
        );
    }

    #[test]
    fn each_measurement_says_what_it_does() {
        for (arguments, plan) in [
            (&["rotations", "--count", "3"][..], "3 CA rotations"),
            (&["repairs", "--targets", "7"], "7 CustomResourceDefinitions: 300"),
            (
                &["repairs", "--kind", "webhooks"],
                "1000 ValidatingWebhookConfigurations",
            ),
            (
                &["nights", "--kills-every", "20s"],
                "the leader killed every 20s, empty",
            ),
            (&["nights", "--clock-steps"], "the operator's clock stepping"),
            (&["blind", "--leaf", "2m"], "a certificate that lives for 2m"),
            (&["idle", "--for", "2m"], "idle for 2m"),
            (
                &["idle", "--targets", "9"],
                "9 CustomResourceDefinitions as targets, idle",
            ),
            (&["crowd", "--definitions", "5"], "5 CustomResourceDefinitions"),
            (
                &["flood", "endpoint-slices", "--for", "20s"],
                "10000 EndpointSlices of 10 addresses that never answer for 20s",
            ),
            (
                &["flood", "guard-bodies"],
                "100 clients that send 16 MiB to the guard for 5m",
            ),
            (&["migration", "--kills", "2"], "killed 2 times"),
        ] {
            let told = Arguments::parse_from([&["soak"], arguments].concat()).to_string();
            assert!(told.contains(plan), "{told}");
        }
        for refused in [
            &["migration", "--objects", "0"][..],
            &["idle", "--kills", "2"],
            &["repairs", "--kind", "secrets"],
            &["nights"],
            &["flood"],
            &["flood", "pods"],
            &[],
        ] {
            assert!(Arguments::try_parse_from([&["soak"], refused].concat()).is_err());
        }
    }
}
