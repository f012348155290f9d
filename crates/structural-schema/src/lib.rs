//! Structural schemas of custom resources: pruning, defaulting and validation, with the messages of
//! kube-apiserver.
//!
//! ```
//! use serde_json::json;
//! use structural_schema::Structural;
//!
//! let schema = Structural::new(&json!({"type": "object", "properties": {"spec": {
//!     "type": "object",
//!     "properties": {
//!         "replicas": {"type": "integer", "minimum": 0, "default": 1},
//!         "colour": {"type": "string", "enum": ["red", "blue"]},
//!     },
//!     "x-kubernetes-validations": [{"rule": "self.colour != 'blue' || self.replicas < 3", "message": "too much blue"}],
//! }}}));
//!
//! let mut object = json!({"spec": {"colour": "green", "size": 7}});
//! assert_eq!(schema.prune(&mut object), ["spec.size"]);
//! schema.default(&mut object);
//! assert_eq!(object, json!({"spec": {"colour": "green", "replicas": 1}}));
//!
//! let errors = schema.validate(&object, None);
//! assert_eq!(
//!     errors[0].to_string(),
//!     r#"spec.colour: Unsupported value: "green": supported values: "red", "blue""#
//! );
//! // Unchanged values that were invalid before are ignored.
//! assert_eq!(schema.validate(&object, Some(&object)), []);
//!
//! let errors = schema.validate(&json!({"spec": {"colour": "blue", "replicas": 5}}), None);
//! assert_eq!(errors[0].to_string(), r#"spec: Invalid value: "object": too much blue"#);
//! ```

mod cel;
mod defaulting;
mod field;
mod list_type;
mod pruning;
mod validation;

use serde_json::Value;

pub use field::{FieldError, Violation};
pub use list_type::ListType;

use validation::Patterns;

/// The schema of one version of a custom resource: `openAPIV3Schema`.
pub struct Structural {
    schema: Value,
    patterns: Patterns,
    rules: cel::Rules,
}

/// The result of validating an object without an API server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    /// Errors for which an API server rejects the object, in its words.
    pub errors: Vec<FieldError>,
    /// Rules that cannot be evaluated here, each at its field; an API server may accept the object.
    pub undecided: Vec<FieldError>,
}

impl std::fmt::Debug for Structural {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Structural").finish_non_exhaustive()
    }
}

impl Structural {
    /// Compiles a schema. Keywords that an API server would reject are ignored.
    pub fn new(schema: &Value) -> Self {
        Self {
            schema: schema.clone(),
            patterns: Patterns::compile(schema),
            rules: cel::Rules::compile(schema),
        }
    }

    /// Removes fields that are not in the schema and returns their paths, such as `spec.a`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        pruning::prune(&self.schema, object)
    }

    /// Fills in the defaults of absent fields, as an API server does before it validates.
    pub fn default(&self, object: &mut Value) {
        defaulting::apply(&self.schema, object);
    }

    /// Returns the errors of an object. Errors in fields that have not changed since `old` are ignored
    /// (KEP-4008, ratcheting). A rule that cannot be evaluated counts as violated.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let errors = validation::validate(&self.schema, &self.patterns, object, old);
        if !errors.is_empty() {
            return errors;
        }
        let broken = self.rules.check(object, old);
        broken.into_iter().map(|broken| broken.error).collect()
    }

    /// Validates a new object as [`Structural::validate`] does, and returns rules that only an API server can
    /// evaluate separately.
    pub fn validate_offline(&self, object: &Value) -> Validation {
        let errors = validation::validate(&self.schema, &self.patterns, object, None);
        if !errors.is_empty() {
            return Validation {
                errors,
                ..Validation::default()
            };
        }
        let (decided, undecided): (Vec<_>, Vec<_>) = self
            .rules
            .check(object, None)
            .into_iter()
            .partition(|broken| broken.decided);
        let errors = |broken: Vec<cel::BrokenRule>| broken.into_iter().map(|broken| broken.error).collect();
        Validation {
            errors: errors(decided),
            undecided: errors(undecided),
        }
    }
}

/// Returns the errors of the CEL rules in a schema at `field`.
pub fn rule_problems(schema: &Value, field: &str) -> Vec<FieldError> {
    cel::problems(schema, field)
}

#[cfg(test)]
mod tests;
