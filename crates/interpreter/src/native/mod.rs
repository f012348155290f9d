//! Built-in rules for Kubernetes' own kinds, equivalent to Karmada's
//! (`pkg/resourceinterpreter/default/native`).
//!
//! Each module implements one operation. Rules apply only to the versions that Karmada supports, because
//! other versions may have different fields.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use windlass_object::object::text;

use crate::{
    Answer, Interpreter, InterpreterSource, Operation, Question,
    error::OtherAnswerError,
    fields::Fields,
    interpreter::{AnswerFuture, InterpreterFailure},
};

mod aggregate_status;
mod counts;
mod dependencies;
mod health;
mod reflect_status;
mod replicas;
mod retain;

pub use aggregate_status::AggregateStatusError;
pub use reflect_status::ReflectStatusError;
pub use replicas::ReplicasError;
pub use retain::RetainError;

/// Interprets Kubernetes' own kinds, and the health of other kinds by a condition.
#[derive(Clone, Debug)]
pub struct NativeInterpreter {
    now: fn() -> Timestamp,
    /// Condition types by apiVersion and kind.
    condition_health: BTreeMap<(String, String), String>,
}

/// The rule for one operation of one kind.
#[derive(Clone, Debug)]
enum NativeRule {
    Health(health::HealthRule),
    ConditionHealth(String),
    Retain(retain::RetainRule),
    Replica(replicas::ReplicaRule),
    ReviseReplica(replicas::ReplicaRule),
    Dependency(dependencies::DependencyRule),
    Status(reflect_status::StatusRule),
    AggregateStatus(aggregate_status::AggregationRule, fn() -> Timestamp),
}

impl NativeInterpreter {
    /// Creates the interpreter of Kubernetes' own kinds. `now` returns the time for changed conditions.
    pub fn new(now: fn() -> Timestamp) -> Self {
        Self {
            now,
            condition_health: BTreeMap::new(),
        }
    }

    /// Objects of a kind are healthy while the condition of a type is `True` and current, if it has an
    /// observedGeneration. Takes precedence over the built-in rule.
    #[must_use]
    pub fn with_condition_health(mut self, api_version: &str, kind: &str, condition_type: &str) -> Self {
        let known = (api_version.to_owned(), kind.to_owned());
        self.condition_health.insert(known, condition_type.to_owned());
        self
    }

    fn rule(&self, operation: Operation, api_version: &str, kind: &str) -> Option<NativeRule> {
        match operation {
            Operation::InterpretHealth => {
                let known = (api_version.to_owned(), kind.to_owned());
                let by_condition = self.condition_health.get(&known).cloned();
                let own = || health::rule(api_version, kind).map(NativeRule::Health);
                by_condition.map(NativeRule::ConditionHealth).or_else(own)
            }
            Operation::Retain => retain::rule(api_version, kind).map(NativeRule::Retain),
            Operation::InterpretReplica => {
                replicas::ReplicaRule::for_kind(api_version, kind).map(NativeRule::Replica)
            }
            Operation::ReviseReplica => {
                let rule =
                    replicas::ReplicaRule::for_kind(api_version, kind).filter(|rule| rule.can_revise());
                rule.map(NativeRule::ReviseReplica)
            }
            Operation::InterpretDependency => {
                dependencies::rule(api_version, kind).map(NativeRule::Dependency)
            }
            Operation::InterpretStatus => Some(NativeRule::Status(reflect_status::rule(api_version, kind))),
            Operation::AggregateStatus => {
                let rule = aggregate_status::rule(api_version, kind);
                rule.map(|rule| NativeRule::AggregateStatus(rule, self.now))
            }
            // None of Kubernetes' own kinds has components.
            Operation::InterpretComponent => None,
        }
    }
}

impl InterpreterSource for NativeInterpreter {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let api_version = text(object, "/apiVersion").unwrap_or_default();
        let kind = text(object, "/kind").unwrap_or_default();
        let rule = self.rule(operation, api_version, kind);
        rule.map(|rule| Arc::new(rule) as Arc<dyn Interpreter>)
            .into_iter()
            .collect()
    }
}

impl NativeRule {
    fn answer(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        Ok(match (self, question) {
            (Self::Health(rule), Question::Health { object }) => Answer::Health(rule(&Fields::new(object))?),
            (Self::ConditionHealth(condition_type), Question::Health { object }) => Answer::Health(
                health::is_healthy_by_condition(&Fields::new(object), condition_type)?,
            ),
            (Self::Retain(rule), Question::Retain { desired, observed }) => {
                let mut retained = desired.clone();
                rule(&mut retained, observed)?;
                Answer::Object(retained)
            }
            (Self::Replica(rule), Question::Replica { object }) => {
                let (replicas, requirements) = rule.replicas(object)?;
                Answer::Replica {
                    replicas,
                    requirements,
                }
            }
            (Self::ReviseReplica(rule), Question::ReviseReplica { object, replicas }) => {
                Answer::Object(rule.revise(object, replicas)?)
            }
            (Self::Dependency(rule), Question::Dependency { object }) => {
                Answer::Dependency(rule(&Fields::new(object))?)
            }
            (Self::Status(rule), Question::Status { object }) => Answer::Status(rule(&Fields::new(object))?),
            (Self::AggregateStatus(rule, now), Question::AggregateStatus { object, items }) => {
                Answer::Object(aggregate_status::aggregate(*rule, object, items, now())?)
            }
            _ => return Err(OtherAnswerError(question.operation()).into()),
        })
    }
}

impl Interpreter for NativeRule {
    fn name(&self) -> String {
        "NativeInterpreter".to_owned()
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(async move { self.answer(question) })
    }
}

#[cfg(test)]
mod tests;
