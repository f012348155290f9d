//! What is sent and answered: Karmada's `ResourceInterpreterContext`, field by field
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

/// A request, or its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceInterpreterContext<'a> {
    /// [`KARMADA_API_VERSION`](crate::customization::KARMADA_API_VERSION); servers may leave it out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `ResourceInterpreterContext`; servers may leave it out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ResourceInterpreterRequest<'a>>,
    /// What is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResourceInterpreterResponse>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInterpreterRequest<'a> {
    /// One for each request; the response has the same.
    pub uid: String,
    /// Of what kind the object is.
    pub kind: GroupVersionKind,
    /// The object's name.
    #[serde(default)]
    pub name: String,
    /// Its namespace; empty for an object that is in none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// What is asked about it.
    pub operation: Operation,
    /// The object.
    #[serde(default)]
    pub object: Cow<'a, Value>,
    /// The object as it is in a cluster, of [`Operation::Retain`] only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_object: Option<Cow<'a, Value>>,
    /// How many replicas it shall have, of [`Operation::ReviseReplica`] only. Karmada sends 0 with every other operation.
    #[serde(default, rename = "replicas", skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// Its status in each cluster, of [`Operation::AggregateStatus`] only.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub aggregated_status: Cow<'a, [AggregatedStatusItem]>,
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceInterpreterResponse {
    /// That of the request.
    pub uid: String,
    /// Whether there is an answer.
    pub successful: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RequestStatus>,
    /// A JSON patch (RFC 6902) of the object.
    #[serde(skip_serializing_if = "is_empty")]
    pub patch: Base64Bytes,
    /// `JSONPatch`, where there is a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_type: Option<String>,
    /// What each replica needs, of [`Operation::InterpretReplica`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// How many replicas there are, of [`Operation::InterpretReplica`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What the object is made of, of [`Operation::InterpretComponent`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// What the object needs beside it, of [`Operation::InterpretDependency`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependentObjectReference>,
    /// What of its status is worth collecting, of [`Operation::InterpretStatus`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_status: Option<Value>,
    /// Whether it does what it is for, of [`Operation::InterpretHealth`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
}

/// Why there is no answer. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestStatus {
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// As of HTTP.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: i32,
}

/// A kind in one version. `meta/v1` has it under that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupVersionKind {
    /// Empty for Kubernetes' core.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// For example `Deployment`.
    pub kind: String,
}

/// The kind of what is sent and answered.
pub(crate) const CONTEXT_KIND: &str = "ResourceInterpreterContext";

/// The only type of patches.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

fn is_empty(bytes: &Base64Bytes) -> bool {
    bytes.0.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(code: &i32) -> bool {
    *code == 0
}
