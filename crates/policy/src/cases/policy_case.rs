//! One case: a request, and the expected outcome.

use std::sync::Arc;

use serde_json::Value;

use super::{
    outcome::{CaseOutcome, differences},
    reader::merged,
};
use crate::{AdmissionAttributes, AdmissionOperation, EvaluationBudget, KnownData, PolicySet, Rehearsal};

/// A test case: a request, and what policies must do.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyCase {
    /// The tested behaviour.
    pub name: String,
    /// The operation of the request.
    pub operation: AdmissionOperation,
    /// The object that is written or deleted.
    pub object: CaseObject,
    /// The previous object, for an update.
    pub old_object: Option<CaseObject>,
    /// The Namespace of the object; `None` to use the one in the data, if any.
    pub namespace_object: Option<CaseObject>,
    /// The attributes of the request, such as its user.
    pub request: Value,
    /// Data for this case, in addition to that of the file.
    pub data: KnownData,
    /// What the policies must do.
    pub expected: ExpectedOutcome,
}

/// An object that several cases can share, with a change for one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseObject {
    /// The object.
    pub base: Arc<Value>,
    /// A JSON merge patch (RFC 7386) of it.
    pub change: Option<Value>,
}

/// The expected outcome of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedOutcome {
    /// The resulting object, unless the request is refused.
    pub object: ExpectedObject,
    /// The message of the refusal.
    pub denied: Option<String>,
    /// A part of the failure for which it is refused.
    pub error: Option<String>,
    /// Warnings for the client, each in full.
    pub warnings: Vec<String>,
    /// The reported messages.
    pub audits: Vec<String>,
    /// A part of each ignored failure.
    pub ignored: Vec<String>,
}

/// The object that must result from the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ExpectedObject {
    /// The object stays unchanged.
    #[default]
    Same,
    /// The object becomes this one.
    Whole(CaseObject),
    /// The result of this JSON merge patch.
    Change(Value),
    /// The response contains this JSON patch, a list of operations.
    Patch(Value),
}

impl CaseObject {
    /// Returns the object with the change applied.
    pub fn object(&self) -> Value {
        match &self.change {
            Some(change) => merged(&self.base, change),
            None => Value::clone(&self.base),
        }
    }
}

impl PolicyCase {
    /// Evaluates policies and compares the outcome.
    pub fn run(
        &self,
        policies: &PolicySet,
        shared: &KnownData,
        budget: &EvaluationBudget<'_>,
    ) -> CaseOutcome {
        let known = [&self.data, shared];
        let object = self.object.object();
        let old_object = self.old_object.as_ref().map(CaseObject::object);
        let namespace_object = self.namespace_object.as_ref().map(CaseObject::object);
        let mut attributes = match self.operation {
            AdmissionOperation::Delete => AdmissionAttributes {
                operation: self.operation,
                object: None,
                old_object: Some(&object),
                request: &self.request,
                namespace_object: None,
            },
            operation => AdmissionAttributes {
                operation,
                object: Some(&object),
                old_object: old_object.as_ref(),
                request: &self.request,
                namespace_object: None,
            },
        };
        attributes.namespace_object = namespace_object
            .as_ref()
            .or_else(|| KnownData::namespace(&known, attributes.namespace()));
        let rehearsal = Rehearsal::run(policies, &attributes, &known, budget);
        let differences = differences(&self.expected, &object, &rehearsal);
        CaseOutcome {
            rehearsal,
            differences,
        }
    }
}
