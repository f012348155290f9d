//! The API types of both kinds of customizations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::custom_resource::label_selector;

use super::CustomizationRules;

/// The apiVersion of Karmada's kind.
pub const KARMADA_API_VERSION: &str = "config.karmada.io/v1alpha1";

/// The apiVersion of Windlass's kind.
pub const INTERPRETATION_API_VERSION: &str = "interpretation.windlass.dev/v1alpha1";

/// The spec of a ResourceInterpreterCustomization (`config.karmada.io/v1alpha1`): how objects of one kind are
/// interpreted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["target", "customizations"]))]
pub struct ResourceInterpreterCustomizationSpec {
    /// The kind of the objects.
    pub target: CustomizationTarget,
    /// How the objects are interpreted.
    pub customizations: CustomizationRules,
}

/// A kind in one version. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind"]))]
pub struct CustomizationTarget {
    /// apiVersion of the objects, for example apps/v1.
    pub api_version: String,
    /// Kind of the objects, for example Deployment.
    pub kind: String,
}

/// The spec of a ResourceInterpretation (`interpretation.windlass.dev/v1alpha1`): how objects of several
/// kinds, or single objects, are interpreted, and whether other interpreters run first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["targets", "customizations"]))]
pub struct ResourceInterpretationSpec {
    /// The objects: those that any of the targets selects.
    #[schemars(length(min = 1))]
    pub targets: Vec<InterpretationTarget>,
    /// Whether other interpreters run first.
    pub mode: InterpretationMode,
    /// How the objects are interpreted.
    pub customizations: CustomizationRules,
}

/// Selects objects that match all of the given fields. If several customizations select an object, the one
/// with the most specific target is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion"]))]
pub struct InterpretationTarget {
    /// apiVersion of the objects, for example apps/v1; * selects all.
    pub api_version: String,
    /// Kind of the objects, for example Deployment; * selects all. Either this or kinds must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Kinds of the objects, instead of kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Label selector of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<Value>,
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Whether other interpreters run first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum InterpretationMode {
    /// No other interpreter runs. This is the default.
    #[default]
    Replace,
    /// Interpreters with lower precedence run first: other customizations, webhooks, and the built-in rules
    /// for Kubernetes' own kinds.
    Chain,
}
