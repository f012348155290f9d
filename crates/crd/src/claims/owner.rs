//! The owner of an object, determined from the marks of installers.
//!
//! Labels are often copied, by `kubectl expose`, backups and Secret replicators. So an object belongs to a
//! BundleDeployment only if all marks agree: the label, our entry in `metadata.managedFields`, and
//! [`AppliedAs`] with the uid of the BundleDeployment and the identity of the object. Releases before that
//! annotation wrote only the other two; these suffice until the next apply adds the annotation.

use std::fmt;

use serde_json::Value;
use windlass_object::{ObjectKey, names, object, patch};

use super::{
    applied_as::AppliedAs,
    existing_deployments::ExistingDeployments,
    installers::{installer, owner_or_writer},
};

/// The owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The existing BundleDeployment with that name.
    BundleDeployment(String),
    /// No owner: its BundleDeployment was deleted and released it.
    Released,
    /// No owner: the BundleDeployment with that name was deleted without releasing or deleting it.
    Orphaned(String),
    /// Unknown: another client replaced the object and removed the marks.
    Erased,
    /// Another owner, described for messages.
    Other(String),
}

impl Owner {
    /// Determines the owner of `object`: by the uid that [`AppliedAs`] records, else by its label, if
    /// installs wrote it and it is not a copy. Without a label, other installers have precedence.
    pub fn from_object(object: &Value, living: &ExistingDeployments) -> Self {
        let mark = AppliedAs::from_object(object);
        let is_copy = mark.as_ref().is_some_and(|mark| !mark.names(object));
        let label = object::label(object, names::BUNDLE_DEPLOYMENT);
        // The annotation keeps the uid if a user changed the label.
        let by_uid = mark.as_ref().map(|mark| living.name_by_uid(&mark.uid));
        let owner = by_uid.unwrap_or_else(|| label.filter(|name| living.contains(name)));
        if let Some(name) = label {
            // Webhook configurations and the like are created before they are applied.
            let is_ours = !is_copy && patch::is_written_by(object, names::INSTALL);
            return match (owner.filter(|_| is_ours), installer(object)) {
                (Some(owner), _) => Self::BundleDeployment(owner.to_owned()),
                (None, Some(installer)) => Self::Other(installer),
                (None, None) if is_ours => Self::Orphaned(name.to_owned()),
                (None, None) => Self::Other(describe_copy(object, name)),
            };
        }
        if let Some(installer) = installer(object) {
            return Self::Other(installer);
        }
        if object::annotation(object, names::RELEASED_BY).is_some() {
            return Self::Released;
        }
        if is_copy || !patch::applied_by(object, names::INSTALL) {
            return Self::Other(owner_or_writer(object));
        }
        owner.map_or(Self::Erased, |owner| Self::BundleDeployment(owner.to_owned()))
    }

    /// Reports whether `object` was applied for a BundleDeployment but has lost its marks, because another
    /// client replaced it.
    pub fn is_erased(object: &Value) -> bool {
        let is_marked = object::label(object, names::BUNDLE_DEPLOYMENT).is_some()
            || object::annotation(object, names::RELEASED_BY).is_some();
        !is_marked && patch::applied_by(object, names::INSTALL)
    }

    /// Reports whether a BundleDeployment may take the object without `spec.adopt`.
    pub fn is_unowned(&self) -> bool {
        matches!(self, Self::Released | Self::Orphaned(_) | Self::Erased)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BundleDeployment(name) => write!(f, "the BundleDeployment {name}"),
            Self::Released | Self::Erased => f.write_str("no BundleDeployment"),
            Self::Orphaned(name) => write!(f, "the deleted BundleDeployment {name}"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// Describes the writer of an object that has the label of a BundleDeployment but was not applied for it.
fn describe_copy(object: &Value, name: &str) -> String {
    format!(
        "{} (its label {}={name} was copied)",
        owner_or_writer(object),
        names::BUNDLE_DEPLOYMENT
    )
}

/// Returns the error message about an object of another owner.
pub fn foreign_object_message(object: &ObjectKey, owner: &Owner) -> String {
    let way_out = match owner {
        Owner::BundleDeployment(name) => {
            format!(
                "an object has only one owner, so delete {name} or remove the object from one of the two bundles"
            )
        }
        _ => format!(
            "to take it over, stop its other writers and add {}/{} to spec.adopt (windlass install --adopt)",
            object.kind, object.name
        ),
    };
    format!("{object} exists and belongs to {owner}; {way_out}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The BundleDeployment `a` with uid `1`.
    fn living() -> ExistingDeployments {
        [("a".to_owned(), "1".to_owned())].into_iter().collect()
    }

    /// A ConfigMap `n/c` with labels, annotations, and one managedFields entry of Windlass per operation.
    fn config_map(label: &str, mark: &str, operations: &[&str]) -> Value {
        let mut object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": "c"}});
        if !label.is_empty() {
            object["metadata"]["labels"][names::BUNDLE_DEPLOYMENT] = label.into();
        }
        if !mark.is_empty() {
            object["metadata"]["annotations"][names::APPLIED_AS] = mark.into();
        }
        let entry = |operation: &&str| json!({"manager": "windlass-install", "operation": operation});
        let mut entries: Vec<_> = operations.iter().map(entry).collect();
        entries.push(json!({"manager": "kubectl", "operation": "Update"}));
        object["metadata"]["managedFields"] = entries.into();
        object
    }

    #[test]
    fn an_object_is_owned_only_if_all_marks_agree() {
        let owned = || Owner::BundleDeployment("a".to_owned());
        let orphaned = |name: &str| Owner::Orphaned(name.to_owned());
        let field_manager = || Owner::Other("field manager kubectl, not Windlass".to_owned());
        let copied = |name: &str| {
            let words = "field manager kubectl, not Windlass";
            Owner::Other(format!(
                "{words} (its label windlass.dev/bundle-deployment={name} was copied)"
            ))
        };
        let (fits, of_another, of_another_place) = ("1/ConfigMap/n/c", "2/ConfigMap/n/c", "1/ConfigMap/m/c");
        for (label, mark, operations, expected) in [
            ("a", fits, &["Apply"][..], owned()),
            // After a crash between creation and first apply.
            ("a", fits, &["Update"], owned()),
            // From the previous release.
            ("a", "", &["Apply"], owned()),
            // Copies: without our managedFields entry, or with it if a backup made them.
            ("a", fits, &[], copied("a")),
            ("a", "", &[], copied("a")),
            ("a", of_another_place, &["Apply"], copied("a")),
            ("a", of_another_place, &[], copied("a")),
            ("a", "garbage", &["Apply"], copied("a")),
            // The BundleDeployment was deleted, or recreated.
            ("b", of_another, &["Apply"], orphaned("b")),
            ("b", "", &["Apply"], orphaned("b")),
            ("b", "", &[], copied("b")),
            ("a", of_another, &["Apply"], orphaned("a")),
            // A user changed the label.
            ("b", fits, &["Apply"], owned()),
            // The label was removed.
            ("", fits, &["Apply"], owned()),
            ("", of_another, &["Apply"], Owner::Erased),
            ("", "", &["Apply"], Owner::Erased),
            ("", of_another_place, &["Apply"], field_manager()),
            ("", fits, &["Update"], field_manager()),
            ("", "", &[], field_manager()),
        ] {
            let object = config_map(label, mark, operations);
            assert_eq!(
                Owner::from_object(&object, &living()),
                expected,
                "{label} {mark} {operations:?}"
            );
        }
    }

    #[test]
    fn an_object_without_an_existing_owner_stays_with_its_installer() {
        for (label, expected) in [
            ("a", "the BundleDeployment a"),
            ("b", "the Helm release r"),
            ("", "the Helm release r"),
        ] {
            let mut object = config_map(label, "", &["Apply"]);
            object["metadata"]["annotations"]["meta.helm.sh/release-name"] = "r".into();
            assert_eq!(
                Owner::from_object(&object, &living()).to_string(),
                expected,
                "{label:?}"
            );
        }
    }

    #[test]
    fn the_marks_of_every_installer_are_read() {
        for (metadata, expected) in [
            (
                json!({"labels": {"windlass.dev/bundle-deployment": "a", "app.kubernetes.io/managed-by": "Helm"},
                    "managedFields": [{"manager": "windlass-install", "operation": "Apply"}]}),
                "the BundleDeployment a",
            ),
            (
                json!({"labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension",
                    "olm.operatorframework.io/owner-name": "argocd"}}),
                "OLM's ClusterExtension argocd",
            ),
            (
                json!({"annotations": {"operatorframework.io/installed-alongside-1a2b": "operators/argocd.v1"},
                    "labels": {"olm.managed": "true", "operators.coreos.com/argocd.operators": ""}}),
                "OLM's ClusterServiceVersion operators/argocd.v1",
            ),
            (
                json!({"labels": {"olm.owner": "argocd.v1", "olm.owner.namespace": "operators"}}),
                "OLM's ClusterServiceVersion operators/argocd.v1",
            ),
            (
                json!({"labels": {"operators.coreos.com/argocd.operators": ""}}),
                "OLM's operator argocd.operators",
            ),
            (json!({"labels": {"olm.managed": "true"}}), "OLM"),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm"},
                    "annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}}),
                "the Helm release n/r",
            ),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}),
                "a Helm release",
            ),
            (
                json!({"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": true}]}),
                "the B b",
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "app:/ConfigMap:n/c"}}),
                "Argo CD's Application app",
            ),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "k", "kustomize.toolkit.fluxcd.io/namespace": "n"}}),
                "Flux's Kustomization n/k",
            ),
            (
                json!({"managedFields": [{"manager": "kube-apiserver", "subresource": "status"}, {"manager": "kubectl"}]}),
                "field manager kubectl, not Windlass",
            ),
            (json!({}), "an unknown owner, not Windlass"),
            (
                json!({"annotations": {"windlass.dev/released-by": "a"}}),
                "no BundleDeployment",
            ),
        ] {
            let object = json!({ "metadata": metadata });
            assert_eq!(
                Owner::from_object(&object, &living()).to_string(),
                expected,
                "{metadata}"
            );
        }
    }

    #[test]
    fn labels_from_the_bundle_do_not_keep_a_released_object() {
        let object = json!({"metadata": {"annotations": {"windlass.dev/released-by": "a"},
            "labels": {"app.kubernetes.io/managed-by": "Helm", "olm.managed": "true"}}});
        assert_eq!(Owner::from_object(&object, &living()), Owner::Released);
    }

    #[test]
    fn only_applied_objects_can_be_erased() {
        let applied = json!([{"manager": "windlass-install", "operation": "Apply"}]);
        let updated = json!([{"manager": "windlass-install", "operation": "Update"}]);
        for (metadata, expected) in [
            (json!({"managedFields": applied}), true),
            (json!({"managedFields": updated}), false),
            (json!({}), false),
            (
                json!({"managedFields": applied, "labels": {"windlass.dev/bundle-deployment": "a"}}),
                false,
            ),
            (
                json!({"managedFields": applied, "annotations": {"windlass.dev/released-by": "a"}}),
                false,
            ),
        ] {
            let object = json!({ "metadata": metadata });
            assert_eq!(Owner::is_erased(&object), expected, "{metadata}");
        }
    }

    #[test]
    fn an_object_taken_by_another_installer_is_not_unowned() {
        let object = json!({"metadata": {"annotations": {"windlass.dev/released-by": "a",
            "meta.helm.sh/release-name": "r"}}});
        assert_eq!(
            Owner::from_object(&object, &living()),
            Owner::Other("the Helm release r".to_owned())
        );
    }
}
