//! The rules that a change of a CustomResourceDefinition can break, by name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Enforcement;

/// Declares the rules: variant, name, what becomes of a violation unless an exception says otherwise, explanation.
macro_rules! rules {
    ($($variant:ident = $name:literal, $enforcement:ident: $explanation:literal;)*) => {
        /// A rule about changes of CustomResourceDefinitions, with OLM's name where OLM has it too. `windlass check --rules`
        /// explains each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub enum UpgradeRule {
            $(#[doc = $explanation] $variant,)*
        }

        impl UpgradeRule {
            /// Every rule, in the order in which they are reported of a field.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name, as it is reported and as exceptions name it, for example `storedObjects`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the rule asks for, in one line.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }

            /// What becomes of a violation that no exception is about.
            pub fn enforcement(self) -> Enforcement {
                match self { $(Self::$variant => Enforcement::$enforcement,)* }
            }
        }
    };
}

rules! {
    // The CRD as a whole.
    CrdRemoval = "crdRemoval", Strict: "no definition goes";
    Scope = "scope", Strict: "spec.scope stays";
    StoredVersionRemoval = "storedVersionRemoval", Strict: "a version that objects may be stored in stays";
    // The last step of a deprecation, after clients were given time; an install takes the version away only when
    // nothing is stored in it.
    ServedVersionRemoval = "servedVersionRemoval", Warn: "a version that is served stays served";

    // Each property of the schemas.
    ExistingFieldRemoval = "existingFieldRemoval", Strict: "no field goes";
    Type = "type", Strict: "the type of a field stays";
    Required = "required", Strict: "no field becomes required";
    Default = "default", Strict: "defaults stay";
    Enum = "enum", Strict: "every value that an enum allows stays allowed";
    Minimum = "minimum", Strict: "minimum is neither added nor increased";
    MinItems = "minItems", Strict: "minItems is neither added nor increased";
    MinLength = "minLength", Strict: "minLength is neither added nor increased";
    MinProperties = "minProperties", Strict: "minProperties is neither added nor increased";
    Maximum = "maximum", Strict: "maximum is neither added nor decreased";
    MaxItems = "maxItems", Strict: "maxItems is neither added nor decreased";
    MaxLength = "maxLength", Strict: "maxLength is neither added nor decreased";
    MaxProperties = "maxProperties", Strict: "maxProperties is neither added nor decreased";
    Pattern = "pattern", Strict: "patterns stay";
    Nullable = "nullable", Strict: "nullable stays";
    OneOf = "oneOf", Strict: "the schemas of oneOf stay";
    // Nothing becomes invalid, and nothing is lost: fields are owned together or one by one.
    MapType = "mapType", Warn: "x-kubernetes-map-type stays, by which server-side apply tells owners apart";
    Description = "description", None: "description, title, example and externalDocs stay";
    Unhandled = "unhandled", Strict: "everything else stays that decides over what is valid, kept or served";

    // The objects that are there, which only an install knows.
    StoredObjects = "storedObjects", Strict: "stored objects stay valid and lose no field";
}

// === impl UpgradeRule ===

impl fmt::Display for UpgradeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_as_it_is_named() {
        for rule in UpgradeRule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        }
    }
}
