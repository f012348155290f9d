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
    /// Those that can be asked.
    pub(crate) set: PolicySet,
    /// How each fares.
    pub(super) policies: BTreeMap<ObjectKey, Arc<PolicyState>>,
    /// Those that may fail: they can be taken out.
    suspendable: HashMap<PolicyKey, Arc<PolicyState>>,
    /// Whether all policies are known that there are.
    pub(super) is_complete: bool,
    /// Of which policies it is, in which generation, in hexadecimal.
    digest: String,
}

/// Which policy, and in which generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyVersion {
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
}

/// What became of a policy when it was compiled.
#[derive(Debug)]
pub(super) struct PolicyState {
    pub(super) version: PolicyVersion,
    /// One with problems of its rules is compiled all the same; nobody can ask one that cannot be read.
    pub(super) compiled: Result<Arc<CompiledPolicy>, Vec<PolicyProblem>>,
    /// Whether it is asked.
    pub(super) breaker: Mutex<Breaker>,
}

// === impl PolicySnapshot ===

impl PolicySnapshot {
    /// All of these.
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

    /// Whether any of them overrides objects.
    pub(crate) fn has_overrides(&self) -> bool {
        self.set
            .policies()
            .any(|policy| policy.key().kind != PolicyKind::ClusterValidatePolicy)
    }

    /// Whether the ClusterValidatePolicy of this name is there, still the one with this uid, and audits. Of one that cannot be read
    /// nobody knows better.
    pub(super) fn audits(&self, name: &str, uid: &str) -> bool {
        let state = self
            .policies
            .get(&kinds::CLUSTER_VALIDATE_POLICY.object(None, name));
        state.is_some_and(|state| {
            let compiled = state.compiled.as_ref();
            state.version.uid == uid
                && compiled.map_or(true, |policy| policy.tells_by(ValidationAction::Audit))
        })
    }

    /// What tells it from one of other policies, or of other generations of them.
    pub(super) fn described(&self) -> Value {
        json!({"complete": self.is_complete, "digest": self.digest})
    }

    /// A policy that may fail, and so be taken out.
    pub(super) fn suspendable(&self, key: &PolicyKey) -> Option<&PolicyState> {
        self.suspendable.get(key).map(AsRef::as_ref)
    }

    /// All policies that may be taken out, each with whether it is.
    pub(super) fn suspensions(&self) -> impl Iterator<Item = (&PolicyKey, bool)> {
        let suspendable = self.suspendable.iter();
        suspendable.map(|(key, state)| (key, state.suspended().is_some()))
    }

    /// What became of a policy, if it is known as `object` is now.
    pub(super) fn state_of(&self, key: &ObjectKey, object: &Value) -> Option<&Arc<PolicyState>> {
        let state = self.policies.get(key)?;
        (state.version == PolicyVersion::of(object)).then_some(state)
    }
}

// === impl PolicyVersion ===

impl PolicyVersion {
    pub(super) fn of(object: &Value) -> Self {
        Self {
            uid: object::text(object, "/metadata/uid")
                .unwrap_or_default()
                .to_owned(),
            generation: object.pointer("/metadata/generation").and_then(Value::as_i64),
        }
    }
}

// === impl PolicyState ===

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

    /// Why this process does not ask it, if it does not.
    pub(super) fn suspended(&self) -> Option<SuspensionCause> {
        self.breaker.lock().suspended()
    }

    /// What is wrong with it.
    pub(super) fn problems(&self) -> Vec<PolicyProblem> {
        match &self.compiled {
            Ok(compiled) => compiled.problems(),
            Err(problems) => problems.clone(),
        }
    }
}
