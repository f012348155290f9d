//! References to values.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ResourceSelector,
    schemas::{any, rules},
};

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("self.from != 'k8s' || has(self.k8s)", "from: k8s requires the field k8s"),
    ("self.from != 'http' || has(self.http)", "from: http requires the field http"),
    ("self.from == 'owner' || has(self.path) && self.path != ''", "path is missing; only from: owner needs none"),
])))]
pub struct ValueReference {
    /// current, old, k8s, owner or http.
    pub from: ValueSource,
    /// The path of the value in the source: /spec/replicas in an object, body.data.x in the response of a
    /// server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub path: String,
    /// The other object, with from: k8s. Its namespace, name and labels can contain {{path}} for a value of
    /// the current object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k8s: Option<ResourceSelector>,
    /// The request, with from: http.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpReference>,
}

/// The source of a referenced value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum ValueSource {
    /// The new object.
    Current,
    /// The previous object.
    Old,
    /// Another object of the cluster.
    K8s,
    /// The first owner of the object.
    Owner,
    /// The response of a server.
    Http,
}

/// A request whose response contains a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpReference {
    /// The full URL. It can contain {{path}} for a value of the current object.
    #[schemars(length(min = 1, max = 2048))]
    pub url: String,
    /// GET or POST.
    pub method: HttpMethod,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header: BTreeMap<String, String>,
    /// Query parameters for the URL. They can contain {{path}} for a value of the current object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// The body of a POST, any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any")]
    pub body: Option<Value>,
    /// The authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum HttpMethod {
    /// Without a body.
    Get,
    /// With a body.
    Post,
}

/// The authentication with a server: by a token, or by a token that authUrl issues for a user name and a
/// password. secretRef takes precedence over the other fields.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "has(self.secretRef) || has(self.staticToken) || has(self.authUrl)",
        "must have one of secretRef, staticToken and authUrl",
    ),
    (
        "!has(self.authUrl) || has(self.secretRef) || has(self.staticToken) || has(self.username) && has(self.password)",
        "authUrl needs secretRef, or username and password",
    ),
])))]
pub struct HttpAuth {
    /// The Secret with a token, or with username and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// A token. All users who can read the policy can read it; use secretRef.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub static_token: String,
    /// A user name for authUrl.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// A password for authUrl. All users who can read the policy can read it; use secretRef.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
    /// The URL that issues a token for the user name and the password.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub auth_url: String,
    /// The lifetime of a token of authUrl if the response has none, for example 10m.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expire_duration: String,
    /// Written by kinitiras; ignored: tokens are kept in memory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Written by kinitiras; ignored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expire_at: String,
}

/// A reference to a Secret. For an OverridePolicy, the Secret must be in its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"]))]
pub struct SecretReference {
    /// The name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The namespace of the Secret. Defaults to that of the policy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Omits secrets, which must not reach logs.
impl fmt::Debug for HttpAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpAuth")
            .field("secret_ref", &self.secret_ref)
            .field("username", &self.username)
            .field("auth_url", &self.auth_url)
            .field("expire_duration", &self.expire_duration)
            .finish_non_exhaustive()
    }
}
