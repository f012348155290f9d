//! What has been proven already.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use windlass_cluster::endpoints::Endpoint;

/// What has been proven already, by BundleDeployment: an endpoint is not dialled again while nothing has changed.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Proofs {
    known: Mutex<HashMap<String, HashSet<Fact>>>,
    /// The CustomResourceDefinitions whose conversion was asked for with a generated object that proved nothing.
    doubtful: Mutex<HashMap<String, HashSet<String>>>,
}

/// One thing that was seen of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::bundle_deployment) struct Fact {
    pub(in crate::bundle_deployment) endpoint: Endpoint,
    /// SHA-256 of the trust bundle.
    pub(in crate::bundle_deployment) trust: [u8; 32],
    /// What it is called by and what it was asked to do.
    pub(in crate::bundle_deployment) subject: String,
}

impl Proofs {
    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.known.lock().remove(name);
        self.doubtful.lock().remove(name);
    }

    /// Whether it has been seen.
    pub(in crate::bundle_deployment) fn holds(&self, name: &str, fact: &Fact) -> bool {
        self.known
            .lock()
            .get(name)
            .is_some_and(|facts| facts.contains(fact))
    }

    /// Notes that it was seen.
    pub(in crate::bundle_deployment) fn add(&self, name: &str, fact: Fact) {
        self.known.lock().entry(name.to_owned()).or_default().insert(fact);
    }

    /// Notes that the conversion of a CustomResourceDefinition is to be proven with a real object, once there is one.
    pub(in crate::bundle_deployment) fn doubt(&self, name: &str, crd: &str) {
        let mut doubtful = self.doubtful.lock();
        doubtful
            .entry(name.to_owned())
            .or_default()
            .insert(crd.to_owned());
    }

    /// Notes that it was proven.
    pub(in crate::bundle_deployment) fn settle(&self, name: &str, crd: &str) {
        if let Some(doubtful) = self.doubtful.lock().get_mut(name) {
            doubtful.remove(crd);
        }
    }

    /// Whether a conversion is to be proven with a real object, once there is one.
    pub(in crate::bundle_deployment) fn are_doubtful(&self, name: &str) -> bool {
        self.doubtful
            .lock()
            .get(name)
            .is_some_and(|doubtful| !doubtful.is_empty())
    }
}
