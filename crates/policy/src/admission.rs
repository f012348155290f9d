//! The subject of an evaluation: a request to write an object.

use serde_json::Value;
use windlass_object::object;

use crate::api::TargetOperation;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionOperation {
    /// Creates an object.
    Create,
    /// Updates an object.
    Update,
    /// Deletes an object.
    Delete,
    /// Connects to an object.
    Connect,
}

/// A request to write an object, and its context.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionAttributes<'a> {
    /// What the request does to the object.
    pub operation: AdmissionOperation,
    /// The new object, or the options of a connection. `None` for a deletion.
    pub object: Option<&'a Value>,
    /// The previous object, for an update or a deletion.
    pub old_object: Option<&'a Value>,
    /// The request of an AdmissionReview, for its user and other attributes; its objects are ignored. Null
    /// for an object without a request.
    pub request: &'a Value,
    /// The Namespace of the object, if it has one that is known.
    pub namespace_object: Option<&'a Value>,
}

impl AdmissionOperation {
    /// Returns the name of the operation in AdmissionReviews.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// Finds the operation of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// Reports whether a rule for those operations applies. An empty list means all.
    pub fn is_among(self, targets: &[TargetOperation]) -> bool {
        let own = match self {
            Self::Create => TargetOperation::Create,
            Self::Update => TargetOperation::Update,
            Self::Delete => TargetOperation::Delete,
            Self::Connect => TargetOperation::Connect,
        };
        targets.is_empty() || targets.contains(&own) || targets.contains(&TargetOperation::All)
    }
}

impl<'a> AdmissionAttributes<'a> {
    /// Creates the attributes of a creation without a user.
    pub fn create(object: &'a Value) -> Self {
        Self {
            operation: AdmissionOperation::Create,
            object: Some(object),
            old_object: None,
            request: &Value::Null,
            namespace_object: None,
        }
    }

    /// Reads the request of an AdmissionReview.
    ///
    /// # Errors
    ///
    /// If its operation is unknown, or the written or deleted object is missing.
    pub fn from_request(
        request: &'a Value,
        namespace_object: Option<&'a Value>,
    ) -> Result<Self, &'static str> {
        let name = object::text(request, "/operation").unwrap_or_default();
        let operation = AdmissionOperation::from_name(name)
            .ok_or("request.operation: must be CREATE, UPDATE, DELETE or CONNECT")?;
        let field = |name: &str| request.get(name).filter(|value| value.is_object());
        let attributes = Self {
            operation,
            object: field("object"),
            old_object: field("oldObject"),
            request,
            namespace_object,
        };
        match operation {
            AdmissionOperation::Delete if attributes.old_object.is_none() => {
                Err("request.oldObject: must be the object that is deleted")
            }
            AdmissionOperation::Create | AdmissionOperation::Update if attributes.object.is_none() => {
                Err("request.object: must be the object that is written")
            }
            _ => Ok(attributes),
        }
    }

    /// The object that selectors match: the new object, or the deleted one.
    pub fn subject(&self) -> &'a Value {
        self.object.or(self.old_object).unwrap_or(&Value::Null)
    }

    /// The name of the object; empty if it is not assigned yet.
    pub fn name(&self) -> &'a str {
        let text = |value, pointer| object::text(value, pointer).filter(|text| !text.is_empty());
        text(self.subject(), "/metadata/name")
            .or_else(|| text(self.request, "/name"))
            .unwrap_or_default()
    }

    /// The namespace of the object; empty if it has none, also for a Namespace, whose requests repeat its
    /// name there.
    pub fn namespace(&self) -> &'a str {
        let text = |value, pointer| object::text(value, pointer).filter(|text| !text.is_empty());
        if self.is_namespace() {
            return "";
        }
        text(self.subject(), "/metadata/namespace")
            .or_else(|| text(self.request, "/namespace"))
            .unwrap_or_default()
    }

    /// The apiVersion and the kind of the object.
    pub fn kind(&self) -> (&'a str, &'a str) {
        let text = |pointer| object::text(self.subject(), pointer).unwrap_or_default();
        (text("/apiVersion"), text("/kind"))
    }

    /// Whether the object is a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.kind() == ("v1", "Namespace")
    }
}
