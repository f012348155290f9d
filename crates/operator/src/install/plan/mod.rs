//! From what a bundle renders to, and what is in the cluster, to the phases of an install, or to the reasons why there
//! is none.

mod copies;
mod dependency_order;
mod install_plan;
mod interruptions;
mod left_out;
mod phases;
mod preflight;
mod requirements;
mod unserved;
mod upgradeable;

pub use install_plan::Plan;
pub use left_out::{Absences, optional_kinds, versions_of, watched_namespaces, without};
pub use phases::Phases;
pub use preflight::{PreflightObservation, Refusal, listed, preflight};
pub use requirements::{ClusterFacts, UnmetRequirements, unmet};
pub use unserved::{CALLS, unserved};
pub use upgradeable::why_not_upgradeable;
pub use windlass_bundle::Phase;
pub use windlass_crd::{
    sample_object,
    stage::{
        Stage, dropped_but_stored, dropped_versions, may_stop_converting, staged, stops_serving,
        unservable_versions, waits_for_proof,
    },
};
