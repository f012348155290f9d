//! Objects of which it is not known what must be kept of them.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use windlass_object::ObjectKey;

/// Objects that the last walk left as they were, since it is not known what of them must be kept, by BundleDeployment; and why.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Unretained(Mutex<HashMap<String, BTreeMap<ObjectKey, String>>>);

impl Unretained {
    /// Notes that an object of a BundleDeployment was left as it was.
    pub(in crate::bundle_deployment) fn note(&self, name: &str, key: ObjectKey, why: String) {
        let mut known = self.0.lock();
        known.entry(name.to_owned()).or_default().insert(key, why);
    }

    /// Whether an object was left as it was.
    pub(in crate::bundle_deployment) fn has(&self, name: &str, key: &ObjectKey) -> bool {
        let known = self.0.lock();
        known.get(name).is_some_and(|objects| objects.contains_key(key))
    }

    /// Why objects of a BundleDeployment were left as they were.
    pub(in crate::bundle_deployment) fn reasons(&self, name: &str) -> Vec<String> {
        let known = self.0.lock();
        known
            .get(name)
            .into_iter()
            .flatten()
            .map(|(_, why)| why.clone())
            .collect()
    }

    /// Forgets what the last walk of a BundleDeployment left, before another one or when it is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}
