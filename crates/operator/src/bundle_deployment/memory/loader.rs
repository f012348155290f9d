//! What was loaded last.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use windlass_api::{BundleDeploymentSpec, BundleStatus};
use windlass_bundle::{requirements::Requirements, upgrade::Predecessors};

use crate::install::plan::Plan;

/// Remembers what was loaded last for each BundleDeployment: planning a large bundle takes a while.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Loader(Mutex<HashMap<String, Remembered>>);

struct Remembered {
    spec: BundleDeploymentSpec,
    loaded: Arc<Loaded>,
}

/// What a source holds.
#[derive(Clone)]
pub(in crate::bundle_deployment) struct Loaded {
    pub(in crate::bundle_deployment) bundle: BundleStatus,
    pub(in crate::bundle_deployment) plan: Plan,
    /// Which bundles it may follow.
    pub(in crate::bundle_deployment) predecessors: Predecessors,
    /// What it requires of the cluster.
    pub(in crate::bundle_deployment) requirements: Requirements,
}

// === impl Loader ===

impl Loader {
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        digest: &str,
        spec: &BundleDeploymentSpec,
    ) -> Option<Arc<Loaded>> {
        let remembered = self.0.lock();
        let found = remembered.get(name)?;
        (found.loaded.bundle.digest == digest && found.spec == *spec).then(|| found.loaded.clone())
    }

    /// Keeps what was loaded for `spec`.
    pub(in crate::bundle_deployment) fn keep(
        &self,
        name: String,
        spec: BundleDeploymentSpec,
        loaded: Arc<Loaded>,
    ) {
        self.0.lock().insert(name, Remembered { spec, loaded });
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}
