//! The rules for changes of CustomResourceDefinitions, by name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Enforcement;

/// Declares the rules: variant, name, default enforcement, explanation.
macro_rules! rules {
    ($($variant:ident = $name:literal, $enforcement:ident: $explanation:literal;)*) => {
        /// Rule for changes to CustomResourceDefinitions, named as in OLM where OLM has it too. `windlass check
        /// --rules` explains each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub enum UpgradeRule {
            $(#[doc = $explanation] $variant,)*
        }

        impl UpgradeRule {
            /// Every rule, in the order in which they are reported for a field.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name in reports and exceptions, for example `storedObjects`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns what the rule requires, in one line.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }

            /// Returns how a violation is treated without an exception.
            pub fn enforcement(self) -> Enforcement {
                match self { $(Self::$variant => Enforcement::$enforcement,)* }
            }
        }
    };
}

rules! {
    // The CRD as a whole.
    CrdRemoval = "crdRemoval", Strict: "no CustomResourceDefinition is removed";
    Scope = "scope", Strict: "spec.scope does not change";
    StoredVersionRemoval = "storedVersionRemoval", Strict: "no version is removed that objects may be stored in";
    // The end of a deprecation, after clients had time to migrate; an install removes the version only when
    // nothing is stored in it.
    ServedVersionRemoval = "servedVersionRemoval", Warn: "served versions stay served";

    // Each property of the schemas.
    ExistingFieldRemoval = "existingFieldRemoval", Strict: "no field is removed";
    Type = "type", Strict: "the type of a field does not change";
    Required = "required", Strict: "no field becomes required";
    Default = "default", Strict: "defaults do not change";
    Enum = "enum", Strict: "no allowed value of an enum is removed";
    Minimum = "minimum", Strict: "minimum is neither added nor increased";
    MinItems = "minItems", Strict: "minItems is neither added nor increased";
    MinLength = "minLength", Strict: "minLength is neither added nor increased";
    MinProperties = "minProperties", Strict: "minProperties is neither added nor increased";
    Maximum = "maximum", Strict: "maximum is neither added nor decreased";
    MaxItems = "maxItems", Strict: "maxItems is neither added nor decreased";
    MaxLength = "maxLength", Strict: "maxLength is neither added nor decreased";
    MaxProperties = "maxProperties", Strict: "maxProperties is neither added nor decreased";
    Pattern = "pattern", Strict: "patterns do not change";
    Nullable = "nullable", Strict: "nullable does not change";
    OneOf = "oneOf", Strict: "oneOf schemas do not change";
    // Nothing becomes invalid or is lost; only the granularity of field ownership changes.
    MapType = "mapType", Warn: "x-kubernetes-map-type does not change, since server-side apply tracks field ownership by it";
    Description = "description", None: "description, title, example and externalDocs do not change";
    Unhandled = "unhandled", Strict: "no other change affects which objects are valid, stored or served";

    // Existing objects, which only an install knows.
    StoredObjects = "storedObjects", Strict: "stored objects stay valid and lose no field";
}

impl fmt::Display for UpgradeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_names_are_camel_case() {
        for rule in UpgradeRule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        }
    }
}
