//! All policies at one moment.

use std::{collections::BTreeMap, sync::Arc};

use policy::{CompiledPolicy, PolicyKind, PolicyProblem, PolicySet};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_object::{ObjectKey, object};

/// All policies at one moment, compiled.
#[derive(Debug, Default)]
pub(crate) struct PolicySnapshot {
    /// Those that can be asked.
    pub(crate) set: PolicySet,
    /// How each fares.
    pub(super) policies: BTreeMap<ObjectKey, Arc<PolicyState>>,
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
}

// === impl PolicySnapshot ===

impl PolicySnapshot {
    /// All of these.
    pub(super) fn new(policies: BTreeMap<ObjectKey, Arc<PolicyState>>, is_complete: bool) -> Self {
        let compiled = policies
            .values()
            .filter_map(|state| state.compiled.as_ref().ok().cloned());
        let mut digest = Sha256::new();
        for (key, state) in &policies {
            let PolicyVersion { uid, generation } = &state.version;
            digest.update(format!("{key}\n{uid}\n{generation:?}\n"));
        }
        Self {
            set: PolicySet::new(compiled),
            policies,
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

    /// What tells it from one of other policies, or of other generations of them.
    pub(super) fn described(&self) -> Value {
        json!({"complete": self.is_complete, "digest": self.digest})
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
    /// What is wrong with it.
    pub(super) fn problems(&self) -> Vec<PolicyProblem> {
        match &self.compiled {
            Ok(compiled) => compiled.problems(),
            Err(problems) => problems.clone(),
        }
    }
}
