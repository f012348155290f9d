//! Structural schemas of custom resources, and how lists and maps of any kind merge.

mod builtin;
mod cel;
mod defaulting;
mod list_type;
mod list_types;
mod pruning;
mod validation;

use serde_json::Value;

pub use list_type::ListType;
pub use list_types::TypeSchema;

use crate::field::FieldError;

/// The schema of one version of a custom resource: `openAPIV3Schema`.
pub struct Structural {
    schema: Value,
    rules: cel::Rules,
    types: TypeSchema,
}

impl std::fmt::Debug for Structural {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Structural").finish_non_exhaustive()
    }
}

// === impl Structural ===

impl Structural {
    /// A schema that was checked by [`crate::crd::validate`].
    pub fn new(schema: &Value) -> Self {
        Self {
            schema: schema.clone(),
            rules: cel::Rules::compile(schema),
            types: TypeSchema::custom(schema.clone()),
        }
    }

    /// How its lists and maps merge.
    pub fn types(&self) -> &TypeSchema {
        &self.types
    }

    /// Removes fields that the schema does not know and tells their paths, as `spec.a`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        pruning::prune(&self.schema, object)
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        defaulting::apply(&self.schema, object);
    }

    /// What is wrong with an object. What was wrong with `old` in the same field already, and did not change, is
    /// passed over (KEP-4008, ratcheting).
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = validation::validate(&self.schema, object, old);
        if errors.is_empty() {
            errors = self.rules.check(object, old);
        }
        errors
    }
}

/// What is wrong with the CEL rules in a schema that lies at `field`.
pub fn rule_problems(schema: &Value, field: &str) -> Vec<FieldError> {
    cel::problems(schema, field)
}

#[cfg(test)]
mod tests;
