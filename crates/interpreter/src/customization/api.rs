//! The two kinds of objects that hold customizations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::custom_resource::label_selector;

use super::CustomizationRules;

/// The group and version of Karmada's configuration.
pub const KARMADA_API_VERSION: &str = "config.karmada.io/v1alpha1";

/// The group and version of this crate's own kind.
pub const INTERPRETATION_API_VERSION: &str = "interpretation.windlass.dev/v1alpha1";

/// The spec of a ResourceInterpreterCustomization (`config.karmada.io/v1alpha1`): how objects of one kind are interpreted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["target", "customizations"]))]
pub struct ResourceInterpreterCustomizationSpec {
    /// Of which objects.
    pub target: CustomizationTarget,
    /// How they are interpreted.
    pub customizations: CustomizationRules,
}

/// A kind in one version. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind"]))]
pub struct CustomizationTarget {
    /// Their apiVersion, for example apps/v1.
    pub api_version: String,
    /// Their kind, for example Deployment.
    pub kind: String,
}

/// The spec of a ResourceInterpretation (`interpretation.windlass.dev/v1alpha1`): how objects of several kinds, or single ones, are
/// interpreted, and whether others are asked before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["targets", "customizations"]))]
pub struct ResourceInterpretationSpec {
    /// Of which objects: those of any of the targets.
    #[schemars(length(min = 1))]
    pub targets: Vec<InterpretationTarget>,
    /// Whether others are asked before.
    pub mode: InterpretationMode,
    /// How they are interpreted.
    pub customizations: CustomizationRules,
}

/// Which objects: all of the given fields have to fit. Of several objects with a customization the one with the most specific target
/// counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion"]))]
pub struct InterpretationTarget {
    /// Their apiVersion, for example apps/v1; * for any.
    pub api_version: String,
    /// Their kind, for example Deployment; * for any. Either this or kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Their kinds, instead of one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// What their labels fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<Value>,
    /// Their name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Whether others are asked before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum InterpretationMode {
    /// Nobody else is asked. This is the default.
    #[default]
    Replace,
    /// Whoever counts less is asked before: other customizations, webhooks, what is known of Kubernetes' own kinds.
    Chain,
}
