//! What policies made of an install when they were asked last.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    install::{overrides::OverrideDecision, revision::InstallSettings},
    policies::PolicySnapshot,
};

/// Remembers for each BundleDeployment what policies made of its objects: asking them takes a while.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Decisions(Mutex<HashMap<String, (OverrideInputs, DecisionOutcome)>>);

/// What decides what policies make of an install.
#[derive(Clone)]
pub(in crate::bundle_deployment) struct OverrideInputs {
    /// The digest of the bundle.
    pub(in crate::bundle_deployment) digest: String,
    /// The settings, without overrides.
    pub(in crate::bundle_deployment) settings: InstallSettings,
    /// The policies.
    pub(in crate::bundle_deployment) policies: Arc<PolicySnapshot>,
    /// The Namespaces of the objects, by name.
    pub(in crate::bundle_deployment) namespaces: BTreeMap<String, Value>,
}

/// What policies make of an install; else a reason and a message.
pub(in crate::bundle_deployment) type DecisionOutcome = Result<Arc<OverrideDecision>, (&'static str, String)>;

impl Decisions {
    /// What came of it, if the same was asked last.
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        inputs: &OverrideInputs,
    ) -> Option<DecisionOutcome> {
        let known = self.0.lock();
        let (of, outcome) = known.get(name)?;
        of.are_same(inputs).then(|| outcome.clone())
    }

    /// Keeps what came of it.
    pub(in crate::bundle_deployment) fn keep(
        &self,
        name: &str,
        inputs: OverrideInputs,
        outcome: DecisionOutcome,
    ) {
        self.0.lock().insert(name.to_owned(), (inputs, outcome));
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

impl OverrideInputs {
    fn are_same(&self, other: &Self) -> bool {
        self.digest == other.digest
            && Arc::ptr_eq(&self.policies, &other.policies)
            && self.namespaces == other.namespaces
            && self.settings == other.settings
    }
}
