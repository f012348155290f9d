//! Policies that cannot be evaluated.

use std::fmt;

use crate::{
    CompiledPolicy, PolicyKey, api::FailurePolicyType, compiled::RuleStep, reference::DataReference,
};

/// That a policy could not be evaluated for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFailure {
    /// Which policy.
    pub policy: PolicyKey,
    /// Which of its rules, counted from 0; `None` where none was asked yet.
    pub rule: Option<usize>,
    /// At what.
    pub reason: FailureReason,
    /// What went wrong.
    pub message: String,
    /// What the policy says that becomes of the request.
    pub failure_policy: FailurePolicyType,
}

/// At what a policy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureReason {
    /// It is wrong itself.
    Policy,
    /// It cannot be told whether it is for the object.
    Selection,
    /// Something that a rule refers to is not there.
    Reference,
    /// A step of a rule failed.
    Step(RuleStep),
    /// The time for the request ran out.
    Deadline,
}

/// Why a rule comes to no end.
#[derive(Debug)]
pub(super) enum RuleStop {
    /// These have to be fetched first.
    Missing(Vec<DataReference>),
    Failed(FailureReason, String),
}

// === impl PolicyFailure ===

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
        // A problem of the policy says itself where it is.
        if let Some(rule) = self.rule.filter(|_| self.reason != FailureReason::Policy) {
            write!(formatter, "rule {rule}: ")?;
        }
        if let FailureReason::Step(step) = self.reason {
            write!(formatter, "{step}: ")?;
        }
        formatter.write_str(&self.message)
    }
}
