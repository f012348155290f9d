//! The request and response: Karmada's `ResourceInterpreterContext`
//! (`pkg/apis/config/v1alpha1/interpretercontext_types.go`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webhook_transport::Base64Bytes;

use crate::{
    Operation,
    answer::{Component, DependentObjectReference, ReplicaRequirements},
    question::AggregatedStatusItem,
};

/// A request or its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceInterpreterContext<'a> {
    /// [`KARMADA_API_VERSION`](crate::customization::KARMADA_API_VERSION); servers may omit it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `ResourceInterpreterContext`; servers may omit it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The request; absent in a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ResourceInterpreterRequest<'a>>,
    /// The response; absent in a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResourceInterpreterResponse>,
}

/// A question to a webhook. Karmada's type of that name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInterpreterRequest<'a> {
    /// A unique ID; the response has the same.
    pub uid: String,
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The name of the object.
    #[serde(default)]
    pub name: String,
    /// The namespace of the object; empty if it is cluster-scoped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The operation to perform.
    pub operation: Operation,
    /// The object to interpret.
    #[serde(default)]
    pub object: Cow<'a, Value>,
    /// The observed object, only for [`Operation::Retain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_object: Option<Cow<'a, Value>>,
    /// The requested number of replicas, only for [`Operation::ReviseReplica`]. Karmada sends 0 for every
    /// other operation.
    #[serde(default, rename = "replicas", skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// The status in each cluster, only for [`Operation::AggregateStatus`].
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub aggregated_status: Cow<'a, [AggregatedStatusItem]>,
}

/// A webhook's answer, or why there is none. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceInterpreterResponse {
    /// The ID of the request.
    pub uid: String,
    /// Whether there is an answer.
    pub successful: bool,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RequestStatus>,
    /// A JSON patch (RFC 6902) of the object.
    #[serde(skip_serializing_if = "is_empty")]
    pub patch: Base64Bytes,
    /// `JSONPatch` if there is a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_type: Option<String>,
    /// What each replica requires, for [`Operation::InterpretReplica`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// The number of replicas, for [`Operation::InterpretReplica`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The components of the object, for [`Operation::InterpretComponent`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// The dependencies of the object, for [`Operation::InterpretDependency`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependentObjectReference>,
    /// The status to collect, for [`Operation::InterpretStatus`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_status: Option<Value>,
    /// Whether the object is healthy, for [`Operation::InterpretHealth`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
}

/// Why there is no answer. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestStatus {
    /// A message for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// A code like an HTTP status.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: i32,
}

/// A kind in one version, as in `meta/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupVersionKind {
    /// Empty for Kubernetes' core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// For example `Deployment`.
    pub kind: String,
}

/// The kind of requests and responses.
pub(crate) const CONTEXT_KIND: &str = "ResourceInterpreterContext";

/// The only supported type of patches.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

fn is_empty(bytes: &Base64Bytes) -> bool {
    bytes.0.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(code: &i32) -> bool {
    *code == 0
}
