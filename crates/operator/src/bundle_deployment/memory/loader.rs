//! What was loaded last.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use windlass_api::BundleStatus;
use windlass_bundle::{sources::StoredBundle, upgrade::Predecessors};

use crate::install::{plan::Plan, revision::InstallSettings};

/// Remembers what was loaded last for each BundleDeployment: planning a large bundle takes a while.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Loader(Mutex<HashMap<String, Vec<Arc<Loaded>>>>);

/// How many revisions of a BundleDeployment are remembered: the installed one and the next one.
const REMEMBERED: usize = 2;

/// A bundle, and the plan of its install.
pub(in crate::bundle_deployment) struct Loaded {
    pub(in crate::bundle_deployment) bundle: BundleStatus,
    /// What decided with the bundle what the plan is.
    pub(in crate::bundle_deployment) settings: InstallSettings,
    pub(in crate::bundle_deployment) plan: Plan,
    /// Which bundles it may follow.
    pub(in crate::bundle_deployment) predecessors: Predecessors,
    /// Its bytes, as they are recorded.
    pub(in crate::bundle_deployment) stored: StoredBundle,
}

// === impl Loader ===

impl Loader {
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        digest: &str,
        settings: &InstallSettings,
    ) -> Option<Arc<Loaded>> {
        let mut remembered = self.0.lock();
        let all = remembered.get_mut(name)?;
        let place = all
            .iter()
            .position(|loaded| loaded.bundle.digest == digest && loaded.settings == *settings)?;
        // What was asked for last goes last.
        let found = all.remove(place);
        all.push(found.clone());
        Some(found)
    }

    /// Keeps what was loaded for a BundleDeployment.
    pub(in crate::bundle_deployment) fn keep(&self, name: &str, loaded: Arc<Loaded>) {
        let mut remembered = self.0.lock();
        let all = remembered.entry(name.to_owned()).or_default();
        all.push(loaded);
        if all.len() > REMEMBERED {
            all.remove(0);
        }
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}
