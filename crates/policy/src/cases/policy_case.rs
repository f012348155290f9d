//! One case: a request, and what is expected of policies.

use std::sync::Arc;

use serde_json::Value;

use super::{
    outcome::{CaseOutcome, differences},
    reader::merged,
};
use crate::{AdmissionAttributes, AdmissionOperation, EvaluationBudget, KnownData, PolicySet, Rehearsal};

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyCase {
    /// What is tried.
    pub name: String,
    /// What is done.
    pub operation: AdmissionOperation,
    /// The object that is written or deleted.
    pub object: CaseObject,
    /// The object as it was before, where it is changed.
    pub old_object: Option<CaseObject>,
    /// The Namespace of the object; `None` where the data knows it, or nobody does.
    pub namespace_object: Option<CaseObject>,
    /// What of the request says who asks.
    pub request: Value,
    /// What is known for this case, beside what is known for all of the file.
    pub data: KnownData,
    /// What is expected.
    pub expected: ExpectedOutcome,
}

/// An object that several cases may share, with what is different in one.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseObject {
    /// The object.
    pub base: Arc<Value>,
    /// A JSON merge patch (RFC 7386) of it.
    pub change: Option<Value>,
}

/// What is expected of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedOutcome {
    /// What becomes of the object, unless the request is refused.
    pub object: ExpectedObject,
    /// The message with which it is refused.
    pub denied: Option<String>,
    /// A part of the failure for which it is refused.
    pub error: Option<String>,
    /// What is warned of.
    pub warnings: Vec<String>,
    /// What is reported.
    pub audits: Vec<String>,
    /// A part of each failure that does not matter.
    pub ignored: Vec<String>,
}

/// What is expected to become of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ExpectedObject {
    /// It stays as it is.
    #[default]
    Same,
    /// It becomes this.
    Whole(CaseObject),
    /// It becomes what this JSON merge patch makes of it.
    Change(Value),
    /// This JSON patch, a list of operations, is the answer.
    Patch(Value),
}

// === impl CaseObject ===

impl CaseObject {
    /// The object, changed.
    pub fn object(&self) -> Value {
        match &self.change {
            Some(change) => merged(&self.base, change),
            None => Value::clone(&self.base),
        }
    }
}

// === impl PolicyCase ===

impl PolicyCase {
    /// Asks policies, and compares.
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
