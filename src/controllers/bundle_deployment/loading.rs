//! From a source to a plan.

use super::{Halt, Reconciler};
use crate::{
    api::{BundleDeployment, BundleStatus},
    domain::{
        plan::Plan,
        status::{Standing, Step},
    },
};

/// Remembers what was loaded.
#[derive(Default)]
pub(super) struct Loader {}

/// What a source holds.
pub(super) struct Loaded {
    pub(super) bundle: BundleStatus,
    pub(super) plan: Plan,
}

impl Reconciler {
    pub(super) async fn load(&self, _deployment: &BundleDeployment) -> Result<Loaded, Halt> {
        Err(Halt::Gate(Standing::failed(
            Step::Accepted,
            "SourceInvalid",
            String::new(),
        )))
    }
}
