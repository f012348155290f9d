//! Failures of policies.

use std::fmt;

use crate::{
    CompiledPolicy, PolicyKey, api::FailurePolicyType, compiled::RuleStep, reference::DataReference,
};

/// The failure of a policy for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFailure {
    /// Key of the policy that failed.
    pub policy: PolicyKey,
    /// The index of the rule; `None` for a failure before any rule.
    pub rule: Option<usize>,
    /// The part that failed.
    pub reason: FailureReason,
    /// What went wrong.
    pub message: String,
    /// The failure policy that applies.
    pub failure_policy: FailurePolicyType,
}

/// The part of a policy that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureReason {
    /// The policy itself is invalid.
    Policy,
    /// It is unknown whether the policy selects the object.
    Selection,
    /// A reference of a rule failed.
    Reference,
    /// A step of a rule failed.
    Step(RuleStep),
    /// The deadline of the request passed.
    Deadline,
}

/// Why a rule did not complete.
#[derive(Debug)]
pub(super) enum RuleStop {
    /// References that must be fetched first.
    Missing(Vec<DataReference>),
    Failed(FailureReason, String),
}

impl PolicyFailure {
    pub(super) fn new(
        policy: &CompiledPolicy,
        rule: Option<usize>,
        reason: FailureReason,
        message: String,
    ) -> Self {
        Self {
            policy: policy.key.clone(),
            rule,
            reason,
            message,
            failure_policy: policy.failure_policy,
        }
    }
}

impl std::error::Error for PolicyFailure {}

impl fmt::Display for PolicyFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.policy)?;
        // Problems of the policy contain their location.
        if let Some(rule) = self.rule.filter(|_| self.reason != FailureReason::Policy) {
            write!(formatter, "rule {rule}: ")?;
        }
        if let FailureReason::Step(step) = self.reason {
            write!(formatter, "{step}: ")?;
        }
        formatter.write_str(&self.message)
    }
}
