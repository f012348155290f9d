//! What is known of Kubernetes' own kinds, as Karmada knows it (`pkg/resourceinterpreter/default/native`).
//!
//! Each module answers one question. A kind is known in the version in which it is looked at there, and in no other: another may
//! have other fields.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use windlass_object::object::text;

use crate::{
    Answer, Interpreter, InterpreterSource, Operation, Question,
    error::OtherAnswerError,
    fields::Fields,
    interpreter::{InterpreterFailure, Interpreting},
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

/// Answers what is known of Kubernetes' own kinds, and whether objects of others are healthy by one of their conditions.
#[derive(Clone, Debug)]
pub struct NativeInterpreter {
    now: fn() -> Timestamp,
    /// By apiVersion and kind.
    condition_health: BTreeMap<(String, String), String>,
}

/// Answers one question about one kind.
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

// === impl NativeInterpreter ===

impl NativeInterpreter {
    /// Knows Kubernetes' own kinds. `now` tells the time, which stands in conditions that change.
    pub fn new(now: fn() -> Timestamp) -> Self {
        Self {
            now,
            condition_health: BTreeMap::new(),
        }
    }

    /// Knows that objects of that kind are healthy while they have a condition of that type which is `True`, and which is about
    /// their generation where it says about which it is. Counts more than what else is known of the kind.
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
                replicas::ReplicaRule::of(api_version, kind).map(NativeRule::Replica)
            }
            Operation::ReviseReplica => {
                let rule = replicas::ReplicaRule::of(api_version, kind).filter(|rule| rule.can_revise());
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
            // None of Kubernetes' own kinds has several.
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

// === impl NativeRule ===

impl NativeRule {
    fn answer(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        Ok(match (self, question) {
            (Self::Health(rule), Question::Health { object }) => Answer::Health(rule(&Fields::of(object))?),
            (Self::ConditionHealth(condition_type), Question::Health { object }) => {
                Answer::Health(health::by_condition(&Fields::of(object), condition_type)?)
            }
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
                Answer::Object(rule.revised(object, replicas)?)
            }
            (Self::Dependency(rule), Question::Dependency { object }) => {
                Answer::Dependency(rule(&Fields::of(object))?)
            }
            (Self::Status(rule), Question::Status { object }) => Answer::Status(rule(&Fields::of(object))?),
            (Self::AggregateStatus(rule, now), Question::AggregateStatus { object, items }) => {
                Answer::Object(aggregate_status::aggregated(*rule, object, items, now())?)
            }
            _ => return Err(OtherAnswerError(question.operation()).into()),
        })
    }
}

impl Interpreter for NativeRule {
    fn name(&self) -> String {
        "NativeInterpreter".to_owned()
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a> {
        Box::pin(async move { self.answer(question) })
    }
}

#[cfg(test)]
mod tests;
