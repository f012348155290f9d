//! Karmada's `ResourceInterpreterWebhookConfiguration`: which webhooks there are, and what each is asked
//! (`pkg/apis/config/v1alpha1/resourceinterpreterwebhook_types.go`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A webhook: who is called, and about what. Karmada's type of that name, with failurePolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "clientConfig", "interpreterContextVersions"]))]
pub struct ResourceInterpreterWebhook {
    /// Its name, with at least one dot, for example workloads.example.com. It is the only one of that name in its object.
    pub name: String,
    /// Who is called.
    pub client_config: InterpreterClientConfig,
    /// What it is asked: what any of the rules is for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleWithOperations>,
    /// How long a call may take, 1 to 30; 10 where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 30))]
    pub timeout_seconds: Option<i64>,
    /// The versions of ResourceInterpreterContext that it knows, the one that it likes best first. v1alpha1 must be one of them.
    #[schemars(length(min = 1))]
    pub interpreter_context_versions: Vec<String>,
    /// What becomes of a question when the call fails.
    pub failure_policy: InterpreterFailurePolicy,
}

/// Who is called: the client configuration of Kubernetes' webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpreterClientConfig {
    /// A URL of https, without user, query and fragment. Either this or service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A Service, called by the name NAME.NAMESPACE.svc, which its certificate must have. Either this or url.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<InterpreterService>,
    /// The certificates, PEM, of which one must have signed that of the server, base64. Where there are none, whom the system trusts is
    /// trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// A Service that is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["namespace", "name"]))]
pub struct InterpreterService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path that is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its port; 443 where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i64>,
}

/// Operations on objects of kinds. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["operations", "apiGroups", "apiVersions", "kinds"]))]
pub struct RuleWithOperations {
    /// What is asked, for example InterpretHealth; * alone for anything.
    #[schemars(length(min = 1))]
    pub operations: Vec<String>,
    /// The groups of the objects; empty for Kubernetes' core, * alone for any.
    #[schemars(length(min = 1))]
    pub api_groups: Vec<String>,
    /// Their versions; * alone for any.
    #[schemars(length(min = 1))]
    pub api_versions: Vec<String>,
    /// Their kinds; * alone for any.
    #[schemars(length(min = 1))]
    pub kinds: Vec<String>,
}

/// What becomes of a question when the call of a webhook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum InterpreterFailurePolicy {
    /// There is no answer. This is the default.
    #[default]
    Fail,
    /// Whoever counts next is asked: another webhook, or what is known of Kubernetes' own kinds.
    Ignore,
}
