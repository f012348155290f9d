//! All policies at one moment.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use policy::{
    CompiledPolicy, PolicyKey, PolicyKind, PolicyProblem, PolicySet,
    api::{FailurePolicyType, ValidationAction},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, object};

use super::breaker::{Breaker, SuspensionCause};

/// All policies at one moment, compiled.
#[derive(Debug, Default)]
pub(crate) struct PolicySnapshot {
    /// The policies that can be evaluated.
    pub(crate) set: PolicySet,
    /// The state of each policy.
    pub(super) policies: BTreeMap<ObjectKey, Arc<PolicyState>>,
    /// The policies with failure policy `Ignore`: only these can be suspended.
    suspendable: HashMap<PolicyKey, Arc<PolicyState>>,
    /// Whether all policies of the cluster are loaded.
    pub(crate) is_complete: bool,
    /// Hexadecimal hash of the uids and generations.
    digest: String,
}

/// The uid and generation of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyVersion {
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
}

/// The result of compiling a policy.
#[derive(Debug)]
pub(super) struct PolicyState {
    pub(super) version: PolicyVersion,
    /// Problems if the policy cannot be read. One with invalid rules is compiled all the same.
    pub(super) compiled: Result<Arc<CompiledPolicy>, Vec<PolicyProblem>>,
    /// Suspends the policy.
    pub(super) breaker: Mutex<Breaker>,
}

impl PolicySnapshot {
    pub(super) fn new(policies: BTreeMap<ObjectKey, Arc<PolicyState>>, is_complete: bool) -> Self {
        let compiled = policies
            .values()
            .filter_map(|state| state.compiled.as_ref().ok().cloned());
        let suspendable = policies.values().filter_map(|state| {
            let compiled = state.compiled.as_ref().ok()?;
            let may_fail = compiled.failure_policy() == FailurePolicyType::Ignore;
            may_fail.then(|| (compiled.key().clone(), state.clone()))
        });
        let suspendable = suspendable.collect();
        let mut digest = Sha256::new();
        for (key, state) in &policies {
            let PolicyVersion { uid, generation } = &state.version;
            digest.update(format!("{key}\n{uid}\n{generation:?}\n"));
        }
        Self {
            set: PolicySet::new(compiled),
            policies,
            suspendable,
            is_complete,
            digest: format!("{:x}", digest.finalize()),
        }
    }

    /// Reports whether any policy overrides objects.
    pub(crate) fn has_overrides(&self) -> bool {
        self.set
            .policies()
            .any(|policy| policy.key().kind != PolicyKind::ClusterValidatePolicy)
    }

    /// Reports whether the ClusterValidatePolicy with this name still has this uid and audits. One that
    /// cannot be read counts as auditing.
    pub(super) fn audits(&self, name: &str, uid: &str) -> bool {
        let state = self
            .policies
            .get(&kinds::CLUSTER_VALIDATE_POLICY.object(None, name));
        state.is_some_and(|state| {
            let compiled = state.compiled.as_ref();
            state.version.uid == uid
                && compiled.map_or(true, |policy| policy.has_action(ValidationAction::Audit))
        })
    }

    /// Returns what identifies the policies and their generations.
    pub(super) fn version(&self) -> Value {
        json!({"complete": self.is_complete, "digest": self.digest})
    }

    /// Returns a policy that can be suspended.
    pub(super) fn suspendable(&self, key: &PolicyKey) -> Option<&PolicyState> {
        self.suspendable.get(key).map(AsRef::as_ref)
    }

    /// Returns all policies that can be suspended, each with whether it is suspended.
    pub(super) fn suspensions(&self) -> impl Iterator<Item = (&PolicyKey, bool)> {
        let suspendable = self.suspendable.iter();
        suspendable.map(|(key, state)| (key, state.suspension_cause().is_some()))
    }

    /// Returns the state of a policy if it is that of this version of `object`.
    pub(super) fn state_of(&self, key: &ObjectKey, object: &Value) -> Option<&Arc<PolicyState>> {
        let state = self.policies.get(key)?;
        (state.version == PolicyVersion::from_object(object)).then_some(state)
    }
}

impl PolicyVersion {
    pub(super) fn from_object(object: &Value) -> Self {
        Self {
            uid: object::text(object, "/metadata/uid")
                .unwrap_or_default()
                .to_owned(),
            generation: object.pointer("/metadata/generation").and_then(Value::as_i64),
        }
    }
}

impl PolicyState {
    pub(super) fn new(
        version: PolicyVersion,
        compiled: Result<Arc<CompiledPolicy>, Vec<PolicyProblem>>,
    ) -> Self {
        Self {
            version,
            compiled,
            breaker: Mutex::default(),
        }
    }

    /// Returns the cause for which this process suspends the policy; `None` if the policy is not suspended.
    pub(super) fn suspension_cause(&self) -> Option<SuspensionCause> {
        self.breaker.lock().cause()
    }

    /// Returns the problems found when the policy was compiled.
    pub(super) fn problems(&self) -> Vec<PolicyProblem> {
        match &self.compiled {
            Ok(compiled) => compiled.problems(),
            Err(problems) => problems.clone(),
        }
    }
}
