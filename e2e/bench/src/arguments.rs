//! The command line.

use std::fmt;

use clap::{Parser, Subcommand};

use super::{
    admission::AdmissionArguments, bed::Bed, blind::BlindArguments, changes::ChangeArguments,
    crowd::CrowdArguments, flood::FloodArguments, idle::IdleArguments, migration::MigrationArguments,
    nights::NightArguments, repairs::RepairArguments, rotations::RotationArguments,
};

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
    /// How soon many targets carry a new CA.
    Changes(ChangeArguments),
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
    /// What policies add to the time of a write.
    Admission(AdmissionArguments),
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            MeasuredSubject::Rotations(rotations) => rotations.fmt(f)?,
            MeasuredSubject::Changes(changes) => changes.fmt(f)?,
            MeasuredSubject::Repairs(repairs) => repairs.fmt(f)?,
            MeasuredSubject::Nights(nights) => nights.fmt(f)?,
            MeasuredSubject::Blind(blind) => blind.fmt(f)?,
            MeasuredSubject::Idle(idle) => idle.fmt(f)?,
            MeasuredSubject::Crowd(crowd) => crowd.fmt(f)?,
            MeasuredSubject::Flood(flood) => flood.fmt(f)?,
            MeasuredSubject::Migration(migration) => migration.fmt(f)?,
            MeasuredSubject::Admission(admission) => admission.fmt(f)?,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
            (
                &["changes", "--targets", "7", "--source", "secret", "--applied"],
                "7 CustomResourceDefinitions that somebody applies: the CA of their Secret changes 3 times",
            ),
            (&["repairs", "--targets", "7"], "7 CustomResourceDefinitions: 300"),
            (
                &["repairs", "--kind", "webhooks"],
                "1000 ValidatingWebhookConfigurations of 5 webhooks",
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
