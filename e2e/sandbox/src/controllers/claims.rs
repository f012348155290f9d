//! Adoption and release of objects, as in `ClaimObject` of kube-controller-manager
//! (`pkg/controller/controller_ref_manager.go`): an object without a controller that matches the selector is
//! adopted, and a controlled object that no longer matches is released.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    client::ControllerClient,
    objects::{controller_reference, is_controlled_by, is_deleting, name, namespace},
};
use crate::admission::selector_matches;

/// What a controller does with an object of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// The owner controls it already.
    Owned,
    /// It has no controller, and the selector matches.
    Adopt,
    /// The owner controls it, and the selector no longer matches.
    Release,
    /// The owner ignores it.
    Foreign,
}

impl Claim {
    fn new(owner: &Value, object: &Value) -> Self {
        let matches = selector_matches(&owner["spec"]["selector"], &object["metadata"]["labels"]);
        if is_controlled_by(object, owner) {
            return match matches {
                true => Self::Owned,
                false if is_deleting(owner) => Self::Foreign,
                false => Self::Release,
            };
        }
        let adoptable = matches && !has_controller(object) && !is_deleting(object);
        if adoptable && !is_deleting(owner) {
            Self::Adopt
        } else {
            Self::Foreign
        }
    }
}

fn has_controller(object: &Value) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array();
    references
        .into_iter()
        .flatten()
        .any(|reference| reference["controller"] == true)
}

/// Adopts and releases objects of a resource, and returns those that `owner` controls afterwards. Only
/// objects that `candidates` accepts are adopted.
pub(super) async fn claim(
    client: &ControllerClient,
    owner: &Value,
    (group, resource): (&str, &str),
    candidates: fn(&Value) -> bool,
) -> Vec<Arc<Value>> {
    let root = if group.is_empty() {
        "/api/v1".to_owned()
    } else {
        format!("/apis/{group}/v1")
    };
    let list = || client.list(group, resource, Some(namespace(owner)));
    for object in list() {
        let references = match Claim::new(owner, &object) {
            Claim::Adopt if candidates(&object) => with_controller(&object, owner),
            Claim::Release => without_controller(&object, owner),
            _ => continue,
        };
        let path = format!(
            "{root}/namespaces/{}/{resource}/{}",
            namespace(owner),
            name(&object)
        );
        let patch = json!({"metadata": {
            "uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"],
            "ownerReferences": references,
        }});
        client.merge(&path, &patch).await;
    }
    list()
        .into_iter()
        .filter(|object| Claim::new(owner, object) == Claim::Owned)
        .collect()
}

fn with_controller(object: &Value, owner: &Value) -> Value {
    let mut references = without_controller(object, owner);
    if let Some(references) = references.as_array_mut() {
        references.push(controller_reference(owner));
    }
    references
}

fn without_controller(object: &Value, owner: &Value) -> Value {
    let references = object["metadata"]["ownerReferences"].as_array();
    references
        .into_iter()
        .flatten()
        .filter(|reference| reference["uid"] != owner["metadata"]["uid"])
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(deleting: bool) -> Value {
        let mut owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "1"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}}});
        if deleting {
            owner["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        owner
    }

    fn object(app: &str, controller: Option<&str>, deleting: bool) -> Value {
        let mut object = json!({"metadata": {"name": "o", "labels": {"app": app}}});
        if let Some(uid) = controller {
            object["metadata"]["ownerReferences"] = json!([{"uid": uid, "controller": true}]);
        }
        if deleting {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        object
    }

    #[test]
    fn every_case_is_decided_as_in_kube_controller_manager() {
        for (owner_ends, app, controller, object_ends, expected) in [
            (false, "a", Some("1"), false, Claim::Owned),
            (true, "a", Some("1"), false, Claim::Owned),
            (false, "a", Some("1"), true, Claim::Owned),
            (false, "b", Some("1"), false, Claim::Release),
            (true, "b", Some("1"), false, Claim::Foreign),
            (false, "a", Some("2"), false, Claim::Foreign),
            (false, "a", None, false, Claim::Adopt),
            (true, "a", None, false, Claim::Foreign),
            (false, "a", None, true, Claim::Foreign),
            (false, "b", None, false, Claim::Foreign),
        ] {
            let claim = Claim::new(&owner(owner_ends), &object(app, controller, object_ends));
            assert_eq!(claim, expected, "{owner_ends} {app} {controller:?} {object_ends}");
        }
    }

    #[test]
    fn owners_that_are_not_controllers_are_kept() {
        let mut held = object("a", None, false);
        held["metadata"]["ownerReferences"] = json!([{"uid": "9"}]);
        let references = with_controller(&held, &owner(false));
        assert_eq!(references[0], json!({"uid": "9"}));
        assert_eq!(
            (&references[1]["uid"], &references[1]["controller"]),
            (&json!("1"), &json!(true))
        );
    }
}
