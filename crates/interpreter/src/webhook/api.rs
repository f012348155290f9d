//! Karmada's `ResourceInterpreterWebhookConfiguration`
//! (`pkg/apis/config/v1alpha1/resourceinterpreterwebhook_types.go`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A webhook: the server and the operations that it answers. Karmada's type of that name, with failurePolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "clientConfig", "interpreterContextVersions"]))]
pub struct ResourceInterpreterWebhook {
    /// Name of the webhook, unique in its object, with at least one dot, for example workloads.example.com.
    pub name: String,
    /// The server to call.
    pub client_config: InterpreterClientConfig,
    /// The operations and objects that the webhook answers: those of any rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleWithOperations>,
    /// Timeout of a call in seconds, 1 to 30; the default is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 30))]
    pub timeout_seconds: Option<i64>,
    /// Versions of ResourceInterpreterContext that the webhook supports, in order of preference. v1alpha1
    /// must be one of them.
    #[schemars(length(min = 1))]
    pub interpreter_context_versions: Vec<String>,
    /// What happens if the call fails.
    pub failure_policy: InterpreterFailurePolicy,
}

/// The server to call: the client configuration of Kubernetes' webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpreterClientConfig {
    /// An https URL without user, query and fragment. Either this or service must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A Service, called by the name NAME.NAMESPACE.svc, which its certificate must have. Either this or url
    /// must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<InterpreterService>,
    /// Base64-encoded CA certificates in PEM that verify the server. The default is the system's root
    /// certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// A Service to call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["namespace", "name"]))]
pub struct InterpreterService {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Path of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Port of the Service; the default is 443.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i64>,
}

/// Operations on objects of kinds. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["operations", "apiGroups", "apiVersions", "kinds"]))]
pub struct RuleWithOperations {
    /// Operations, for example InterpretHealth; a single * selects all.
    #[schemars(length(min = 1))]
    pub operations: Vec<String>,
    /// API groups of the objects; empty for Kubernetes' core group. A single * selects all.
    #[schemars(length(min = 1))]
    pub api_groups: Vec<String>,
    /// API versions of the objects; a single * selects all.
    #[schemars(length(min = 1))]
    pub api_versions: Vec<String>,
    /// Kinds of the objects; a single * selects all.
    #[schemars(length(min = 1))]
    pub kinds: Vec<String>,
}

/// What happens if the call of a webhook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum InterpreterFailurePolicy {
    /// The question fails. This is the default.
    #[default]
    Fail,
    /// The interpreter with the next lower precedence is used: another webhook, or the built-in rules for
    /// Kubernetes' own kinds.
    Ignore,
}
