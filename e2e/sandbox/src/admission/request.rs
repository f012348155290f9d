//! A request as admission webhooks see it.

use serde_json::Value;

/// A request as admission webhooks see it.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// The resource as the client requested it.
    pub resource: RequestedResource,
    /// The kind of that resource.
    pub kind: String,
    /// The object's name; may be empty on create.
    pub name: String,
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Labels of that namespace; for a Namespace, its own.
    pub namespace_labels: Value,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
    /// `userInfo` of the AdmissionReview.
    pub user: Value,
    /// The object as it would be stored; null for deletes.
    pub object: Value,
    /// The object as it is stored; null for creates.
    pub old_object: Value,
    /// Whether the request is a dry run.
    pub dry_run: bool,
    /// `options`, for example a `CreateOptions`.
    pub options: Value,
    /// Other versions in which the same resource is served: for `matchPolicy: Equivalent`.
    pub equivalents: Vec<ServedVersion>,
}

/// The resource that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedResource {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
}

/// A group and version in which a resource is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedVersion {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
}
