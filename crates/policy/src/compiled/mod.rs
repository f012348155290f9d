//! Compiled policies.

mod compiled_policy;
mod compiled_rule;
mod step;

pub use self::{compiled_policy::CompiledPolicy, step::RuleStep};
pub(crate) use self::{
    compiled_policy::PolicyRules,
    compiled_rule::CompiledRule,
    step::{InputKind, StepAction},
};
