//! Which flood, and for how long.

use std::fmt;

use clap::{Args, ValueEnum};
use windlass_object::GoDuration;

use super::{
    bodies::{BODY, CLIENTS},
    idle_connections::CONNECTIONS,
    kinds::{ADDRESSES, ANNOTATED, ANNOTATION, CONFIG_MAPS, SECRETS, SERVICES, SLICES},
};

/// How a flood is measured: it goes on while requests go through all three webhooks of the sample bundle, CA rotations follow each
/// other, and somebody overwrites a target each second, which is to be repaired. None of the requests is to fail.
#[derive(Clone, Debug, Args)]
pub struct FloodArguments {
    /// What comes in large numbers or sizes.
    pub kind: FloodKind,

    /// Duration.
    #[arg(long = "for", value_name = "DURATION", default_value = "5m")]
    pub duration: GoDuration,

    /// Number of requests to send per second through the webhooks of the sample bundle.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub rate: u32,
}

/// What comes in large numbers or sizes. Objects are all created in the first third of the time, and rewritten in the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FloodKind {
    /// Secrets of 1 MiB with the label by which Windlass finds its own.
    Secrets,
    /// Services with as many annotations as the API server takes.
    Services,
    /// EndpointSlices of addresses that never answer, of Services with certificates and without.
    EndpointSlices,
    /// Clients that send the guard bodies which are too large.
    GuardBodies,
    /// Connections to the guard over which nothing is sent.
    GuardIdle,
    /// Services that ask for a certificate in Secrets of somebody else.
    Annotations,
    /// ConfigMaps as large as the API server takes, half of which ask for a trust bundle and are overwritten.
    ConfigMaps,
}

impl fmt::Display for FloodArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, duration, rate } = self;
        write!(f, "{kind} for {duration} beside {rate} requests a second")
    }
}

impl fmt::Display for FloodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secrets => write!(f, "{SECRETS} labelled Secrets of 1 MiB"),
            Self::Services => write!(
                f,
                "{SERVICES} Services with {} kB of annotations",
                ANNOTATION / 1000
            ),
            Self::EndpointSlices => {
                write!(
                    f,
                    "{SLICES} EndpointSlices of {ADDRESSES} addresses that never answer"
                )
            }
            Self::GuardBodies => write!(f, "{CLIENTS} clients that send {} MiB to the guard", BODY >> 20),
            Self::GuardIdle => write!(f, "{CONNECTIONS} idle connections to the guard"),
            Self::Annotations => write!(f, "{ANNOTATED} annotated Services that name Secrets of others"),
            Self::ConfigMaps => write!(f, "{CONFIG_MAPS} ConfigMaps of 1 MiB, half of which ask"),
        }
    }
}
