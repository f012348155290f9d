//! Values that come from elsewhere.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ResourceSelector,
    schemas::{any, rules},
};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("self.from != 'k8s' || has(self.k8s)", "from: k8s needs k8s"),
    ("self.from != 'http' || has(self.http)", "from: http needs http"),
    ("self.from == 'owner' || has(self.path) && self.path != ''", "path is missing; only from: owner needs none"),
])))]
pub struct ValueReference {
    /// current, old, k8s, owner or http.
    pub from: ValueSource,
    /// Where the value is in what is referred to: /spec/replicas in an object, body.data.x in the answer of a server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub path: String,
    /// Which other object, where from is k8s. Its namespace, name and labels may have {{path}} for a value of the current object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k8s: Option<ResourceSelector>,
    /// Which request, where from is http.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpReference>,
}

/// What is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum ValueSource {
    /// The object as it is written.
    Current,
    /// The object as it was before.
    Old,
    /// Another object of the cluster.
    K8s,
    /// The first owner of the object.
    Owner,
    /// The answer of a server.
    Http,
}

/// A request whose answer is referred to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpReference {
    /// The whole URL. It may have {{path}} for a value of the current object.
    #[schemars(length(min = 1, max = 2048))]
    pub url: String,
    /// GET or POST.
    pub method: HttpMethod,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header: BTreeMap<String, String>,
    /// Parameters that are added to the URL. They may have {{path}} for a value of the current object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// The body of a POST, any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any")]
    pub body: Option<Value>,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
}

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum HttpMethod {
    /// Without a body.
    Get,
    /// With a body.
    Post,
}

/// Who asks a server: by a token, or by a token that authUrl gives for a user name and a password. secretRef counts before all others.
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
    /// The Secret that has token, or username and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// A token. Everybody who may read the policy reads it; use secretRef.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub static_token: String,
    /// A user name for authUrl.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// A password for authUrl. Everybody who may read the policy reads it; use secretRef.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
    /// The URL that gives a token for the user name and the password.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub auth_url: String,
    /// How long a token of authUrl is good where it does not say so, for example 10m.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expire_duration: String,
    /// What kinitiras wrote here. Not read: tokens are kept in memory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// What kinitiras wrote here. Not read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expire_at: String,
}

/// A Secret. That of an OverridePolicy is in its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"]))]
pub struct SecretReference {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its namespace; empty for that of the policy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

// === impl HttpAuth ===

/// Without what is secret: it must not reach logs.
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
