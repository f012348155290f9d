//! What is asked about: a request to write an object.

use serde_json::Value;
use windlass_object::object;

use crate::api::TargetOperation;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionOperation {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Somebody connects to it.
    Connect,
}

/// A request to write an object, and what is known around it.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionAttributes<'a> {
    /// What is done.
    pub operation: AdmissionOperation,
    /// The object as it would be written; of a connection what it asks for. None where an object is deleted.
    pub object: Option<&'a Value>,
    /// The object as it was before, where there was one.
    pub old_object: Option<&'a Value>,
    /// The request of an AdmissionReview: who asks for what. Objects in it are not looked at. Null where nobody asks.
    pub request: &'a Value,
    /// The Namespace of the object, where it has one and that is known.
    pub namespace_object: Option<&'a Value>,
}

// === impl AdmissionOperation ===

impl AdmissionOperation {
    /// As requests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// Whether a rule for those operations acts on it. None are all.
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

// === impl AdmissionAttributes ===

impl<'a> AdmissionAttributes<'a> {
    /// That an object is created, by nobody in particular.
    pub fn create(object: &'a Value) -> Self {
        Self {
            operation: AdmissionOperation::Create,
            object: Some(object),
            old_object: None,
            request: &Value::Null,
            namespace_object: None,
        }
    }

    /// What the request of an AdmissionReview asks for.
    ///
    /// # Errors
    ///
    /// When its operation is not known, or the object that is written or deleted is not there.
    pub fn from_request(request: &'a Value, namespace_object: Option<&'a Value>) -> Result<Self, &'static str> {
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

    /// What policies are selected for: the object as it is written, or that which is deleted.
    pub fn subject(&self) -> &'a Value {
        self.object.or(self.old_object).unwrap_or(&Value::Null)
    }

    /// The name of the object; empty where it has none yet.
    pub fn name(&self) -> &'a str {
        let text = |value, pointer| object::text(value, pointer).filter(|text| !text.is_empty());
        text(self.subject(), "/metadata/name")
            .or_else(|| text(self.request, "/name"))
            .unwrap_or_default()
    }

    /// The namespace of the object; empty where it has none. A request for a Namespace has its name there, which is not meant.
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
