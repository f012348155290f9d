//! Owners of applied objects.

use serde_json::Value;
use windlass_crd::claims::{Adoption, AppliedAs, ExistingDeployments, Owner};
use windlass_object::{names, object, patch};

use crate::{
    impersonation::ServiceAccount,
    kind::{Kind, kinds},
};

/// The BundleDeployment that objects are applied for.
#[derive(Clone, Debug, Default)]
pub struct FieldOwner {
    /// The name of the BundleDeployment, which is a label of its objects.
    pub bundle_deployment: String,
    /// The uid of the BundleDeployment, which is in the annotation [`names::APPLIED_AS`] of its objects.
    pub uid: String,
    /// The install namespace.
    pub namespace: String,
    /// Existing objects that may be taken over.
    pub adopt: Vec<Adoption>,
    /// The account that writes the objects of the bundle; `None` for Windlass itself.
    pub account: Option<ServiceAccount>,
}

/// Kinds that Windlass creates for a bundle, or that Kubernetes controllers create for applied objects.
const OWN_KINDS: [Kind; 3] = [kinds::SERVING_CERTIFICATE, kinds::POD, kinds::REPLICA_SET];

/// Kinds that an install creates in watched namespaces as well.
const WATCHED_NAMESPACE_KINDS: [&str; 2] = ["Role", "RoleBinding"];

impl FieldOwner {
    /// Returns the BundleDeployment in the label of an object, which copies of the object have, too.
    pub fn name_in_label(object: &Value) -> Option<&str> {
        object::label(object, names::BUNDLE_DEPLOYMENT)
    }

    /// Returns the account that writes objects of a kind; `None` for kinds that Windlass writes itself.
    /// ServingCertificates are instructions to Windlass. Pods are canaries of a Deployment that the account
    /// may write, and ReplicaSets are remains of one.
    pub fn service_account_for(&self, kind: &Kind) -> Option<&ServiceAccount> {
        self.account.as_ref().filter(|_| !OWN_KINDS.contains(kind))
    }

    /// Reports whether `live` may be written: it belongs to this owner, has no owner, or may be taken over.
    pub fn may_write(&self, live: &Value, existing: &ExistingDeployments) -> bool {
        match Owner::from_object(live, existing) {
            Owner::BundleDeployment(owner) => owner == self.bundle_deployment,
            Owner::Other(_) => self.adopt.iter().any(|adoption| adoption.names(live)),
            owner => owner.is_unowned(),
        }
    }

    /// Reports whether `live` was applied for this BundleDeployment and is not a copy; only such objects may
    /// be deleted.
    ///
    /// Objects from releases before [`names::APPLIED_AS`] have the label and our entry in the managed fields.
    /// Of them, only those in the expected namespaces count as ours: a backup that was restored to another
    /// namespace with its managed fields looks the same.
    pub fn owns(&self, live: &Value) -> bool {
        let is_labelled = Self::name_in_label(live) == Some(&self.bundle_deployment);
        if !is_labelled || !patch::is_written_by(live, names::INSTALL) {
            return false;
        }
        match AppliedAs::from_object(live) {
            Some(mark) => mark.uid == self.uid && mark.names(live),
            None if object::label(live, names::CANARY).is_some() => self.is_owner_of(live),
            None => {
                let namespace = object::text(live, "/metadata/namespace");
                let kind = object::text(live, "/kind").unwrap_or_default();
                namespace.is_none_or(|namespace| namespace == self.namespace)
                    || WATCHED_NAMESPACE_KINDS.contains(&kind)
            }
        }
    }

    /// Reports whether the garbage collector deletes `live` with the BundleDeployment: canaries are created,
    /// not applied.
    fn is_owner_of(&self, live: &Value) -> bool {
        object::items(live, "/metadata/ownerReferences")
            .iter()
            .any(|reference| object::text(reference, "/uid") == Some(&self.uid))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apply::tests::field_owner;

    fn existing() -> ExistingDeployments {
        let deployments = [("a", "1"), ("b", "2")];
        deployments
            .map(|(name, uid)| (name.to_owned(), uid.to_owned()))
            .into_iter()
            .collect()
    }

    /// Returns a ConfigMap that Windlass applied, after `change`.
    fn live(change: impl FnOnce(&mut Value)) -> Value {
        let mut live = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "namespace": "n", "name": "c", "labels": {names::BUNDLE_DEPLOYMENT: "a"},
                "annotations": {names::APPLIED_AS: "1/ConfigMap/n/c"},
                "managedFields": [{"manager": "windlass-install", "operation": "Apply"}],
            },
        });
        change(&mut live["metadata"]);
        live
    }

    #[test]
    fn objects_with_missing_or_foreign_marks_are_not_owned() {
        assert!(field_owner().owns(&live(|_| {})));
        let changes: [fn(&mut Value); 8] = [
            |metadata| metadata["labels"] = json!({}),
            |metadata| metadata["labels"][names::BUNDLE_DEPLOYMENT] = "b".into(),
            |metadata| metadata["managedFields"] = json!([]),
            |metadata| metadata["managedFields"][0]["manager"] = "velero".into(),
            |metadata| metadata["annotations"][names::APPLIED_AS] = "2/ConfigMap/n/c".into(),
            |metadata| metadata["name"] = "copy".into(),
            |metadata| metadata["namespace"] = "m".into(),
            |metadata| metadata["annotations"][names::APPLIED_AS] = "".into(),
        ];
        for change in changes {
            let live = live(change);
            assert!(!field_owner().owns(&live), "{live}");
        }
    }

    #[test]
    fn objects_of_the_previous_release_are_owned_in_their_namespaces() {
        let before = |kind: &str, namespace: Option<&str>| {
            let mut before = live(|metadata| {
                metadata["annotations"] = json!({});
                metadata["namespace"] = json!(namespace);
            });
            before["kind"] = kind.into();
            before
        };
        for (kind, namespace, expected) in [
            ("ConfigMap", Some("n"), true),
            ("ClusterRole", None, true),
            ("RoleBinding", Some("watched"), true),
            ("ConfigMap", Some("restored"), false),
        ] {
            assert_eq!(
                field_owner().owns(&before(kind, namespace)),
                expected,
                "{kind} {namespace:?}"
            );
        }
    }

    #[test]
    fn a_canary_is_owned_through_its_owner_reference() {
        let canary = |uid: &str, manager: &str| {
            live(|metadata| {
                metadata["annotations"] = json!({});
                metadata["labels"][names::CANARY] = "r".into();
                metadata["ownerReferences"] = json!([{"uid": uid}]);
                metadata["managedFields"] = json!([{"manager": manager, "operation": "Update"}]);
            })
        };
        assert!(field_owner().owns(&canary("1", "windlass-install")));
        assert!(!field_owner().owns(&canary("2", "windlass-install")));
        assert!(!field_owner().owns(&canary("1", "kubectl")));
    }

    #[test]
    fn only_own_released_or_adoptable_objects_may_be_written() {
        let named = FieldOwner {
            adopt: vec!["ConfigMap/c".parse().unwrap()],
            ..field_owner()
        };
        for (change, plainly, adopting) in [
            ((|_| {}) as fn(&mut Value), true, true),
            (|metadata| metadata["annotations"] = json!({}), true, true),
            // A lost label is restored.
            (|metadata| metadata["labels"] = json!({}), true, true),
            (
                |metadata| {
                    metadata["labels"] = json!({});
                    metadata["annotations"] = json!({});
                },
                true,
                true,
            ),
            // Owned by another BundleDeployment, and by a deleted one.
            (
                |metadata| {
                    metadata["labels"][names::BUNDLE_DEPLOYMENT] = "b".into();
                    metadata["annotations"][names::APPLIED_AS] = "2/ConfigMap/n/c".into();
                },
                false,
                false,
            ),
            (
                |metadata| {
                    metadata["labels"][names::BUNDLE_DEPLOYMENT] = "c".into();
                    metadata["annotations"][names::APPLIED_AS] = "3/ConfigMap/n/c".into();
                },
                true,
                true,
            ),
            // Copies.
            (|metadata| metadata["managedFields"] = json!([]), false, true),
            (
                |metadata| {
                    metadata["labels"][names::BUNDLE_DEPLOYMENT] = "c".into();
                    metadata["managedFields"] = json!([]);
                },
                false,
                true,
            ),
            (
                |metadata| metadata["annotations"][names::APPLIED_AS] = "1/Secret/n/c".into(),
                false,
                true,
            ),
            (
                |metadata| *metadata = json!({"name": "c", "annotations": {names::RELEASED_BY: "b"}}),
                true,
                true,
            ),
            (|metadata| *metadata = json!({"name": "c"}), false, true),
        ] {
            let live = live(change);
            assert_eq!(field_owner().may_write(&live, &existing()), plainly, "{live}");
            assert_eq!(named.may_write(&live, &existing()), adopting, "{live}");
        }
    }
}
