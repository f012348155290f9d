//! RBAC's escalation check: users can only grant rights that they hold.

use serde_json::Value;

use super::{
    api_server::ApiServer,
    authorization,
    call::{Call, ResourcePath},
    kinds::ServedResource,
    object_errors::forbidden,
};
use crate::StatusError;

/// Fails if the user grants rights that they do not hold, unless they have the verb `escalate` or `bind`.
pub(super) fn authorize_roles(
    server: &ApiServer,
    call: &Call,
    served: &ServedResource,
    object: &Value,
    namespace: &str,
) -> Result<(), StatusError> {
    if served.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let store = &server.0.store;
    let may = |verb: &str, resource: &str, name: &str| {
        let target = ResourcePath {
            group: served.group.clone(),
            version: served.version.clone(),
            namespace: namespace.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        };
        authorization::allows(store, &call.user, verb, &target)
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (wanted, allowed) = if served.kind.ends_with("Binding") {
        let reference = &object["roleRef"];
        let resource = if reference["kind"] == "ClusterRole" {
            "clusterroles"
        } else {
            "roles"
        };
        let wanted = authorization::role_rules(store, reference, namespace);
        (
            wanted,
            may("bind", resource, reference["name"].as_str().unwrap_or_default()),
        )
    } else {
        (
            object["rules"].as_array().cloned().unwrap_or_default(),
            may("escalate", &served.resource, name),
        )
    };
    if allowed || authorization::covers(store, &call.user, namespace, &wanted) {
        return Ok(());
    }
    let message = format!(
        "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held",
        call.user.name,
        call.user.all_groups()
    );
    Err(forbidden(served, name, &message))
}
