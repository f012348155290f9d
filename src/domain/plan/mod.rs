//! From what a bundle renders to, and what is in the cluster, to the phases of an install, or to the reasons why there
//! is none.

mod crds;
mod phases;
mod preflight;
mod sample;

pub use crds::{Stage, dropped_but_stored, may_stop_converting, staged, unproven_versions};
pub use phases::{Phase, Phases};
pub use preflight::{Refusal, listed, preflight};
pub use sample::minimal_object;

use crate::domain::render::{Certificate, Conversion, Rendered};

/// An install: what there is to be, and what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The namespace of the install.
    pub namespace: String,
    /// Every object, with definitions without conversion and webhook configurations without CA bundles.
    pub phases: Phases,
    /// The conversions that are claimed.
    pub conversions: Vec<Conversion>,
    /// The serving certificates that are needed.
    pub certificates: Vec<Certificate>,
}

// === impl Plan ===

impl Plan {
    /// The plan of an install.
    pub fn new(rendered: Rendered) -> Self {
        let Rendered {
            namespace,
            mut objects,
            admission,
            conversions,
            certificates,
        } = rendered;
        objects.extend(admission);
        Self {
            namespace,
            phases: Phases::new(objects),
            conversions,
            certificates,
        }
    }
}
