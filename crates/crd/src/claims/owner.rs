//! Whose an object in the cluster is, by the marks that installers leave on what they install.
//!
//! A label is easily copied: `kubectl expose` does it, backups into another namespace, replicators of Secrets. So an object
//! is a BundleDeployment's only where all agree: the label, our entry in `metadata.managedFields`, and
//! [`AppliedAs`], which holds the uid of the BundleDeployment and what the object was applied as. Releases before that
//! annotation left the other two: there they suffice, until the next apply adds it.

use std::fmt;

use serde_json::Value;
use windlass_object::{ObjectKey, names, object, patch};

use super::{
    applied_as::AppliedAs,
    installers::{installer, writer},
    living_deployments::LivingDeployments,
};

/// To whom an object belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// To the BundleDeployment of that name, which exists.
    BundleDeployment(String),
    /// To nobody any more: it stayed behind when its BundleDeployment went.
    Released,
    /// To nobody any more: the BundleDeployment of that name went without removing it.
    Orphaned(String),
    /// To whoever applied it: somebody else has replaced it and left the marks out.
    Erased,
    /// To somebody else, in words.
    Other(String),
}

// === impl Owner ===

impl Owner {
    /// Reads the marks of `object`; those of BundleDeployments that exist count before those of others.
    pub fn from_object(object: &Value, living: &LivingDeployments) -> Self {
        let mark = AppliedAs::from_object(object);
        let is_copy = mark.as_ref().is_some_and(|mark| !mark.names(object));
        let label = object::label(object, names::BUNDLE_DEPLOYMENT);
        // The uid outlives a label that was changed.
        let by_uid = mark.as_ref().map(|mark| living.name_by_uid(&mark.uid));
        let owner = by_uid.unwrap_or_else(|| label.filter(|name| living.contains(name)));
        if let Some(name) = label {
            // What sends traffic to webhooks is created before it is applied.
            let is_ours = !is_copy && patch::written_by(object, names::INSTALL);
            return match (owner.filter(|_| is_ours), installer(object)) {
                (Some(owner), _) => Self::BundleDeployment(owner.to_owned()),
                (None, Some(installer)) => Self::Other(installer),
                (None, None) if is_ours => Self::Orphaned(name.to_owned()),
                (None, None) => Self::Other(copied(object, name)),
            };
        }
        if let Some(installer) = installer(object) {
            return Self::Other(installer);
        }
        if object::annotation(object, names::RELEASED_BY).is_some() {
            return Self::Released;
        }
        if is_copy || !patch::applied_by(object, names::INSTALL) {
            return Self::Other(writer(object));
        }
        owner.map_or(Self::Erased, |owner| Self::BundleDeployment(owner.to_owned()))
    }

    /// Whether `object` was applied for a BundleDeployment, and neither belongs to one nor was let go by one: whoever
    /// replaced it has left the marks out.
    pub fn is_erased(object: &Value) -> bool {
        let is_marked = object::label(object, names::BUNDLE_DEPLOYMENT).is_some()
            || object::annotation(object, names::RELEASED_BY).is_some();
        !is_marked && patch::applied_by(object, names::INSTALL)
    }

    /// Whether whoever wants the object may have it without being told to: nobody else does.
    pub fn is_unowned(&self) -> bool {
        matches!(self, Self::Released | Self::Orphaned(_) | Self::Erased)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BundleDeployment(name) => write!(f, "the BundleDeployment {name}"),
            Self::Released | Self::Erased => f.write_str("nobody"),
            Self::Orphaned(name) => write!(f, "nobody: the BundleDeployment {name} is gone"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// Who wrote an object that has the label of a BundleDeployment, but was not applied for it.
fn copied(object: &Value, name: &str) -> String {
    format!(
        "{} (its label {}={name} was copied)",
        writer(object),
        names::BUNDLE_DEPLOYMENT
    )
}

/// Says whose an object is, and how to get it.
pub fn foreign(object: &ObjectKey, owner: &Owner) -> String {
    let way_out = match owner {
        Owner::BundleDeployment(name) => {
            format!(
                "an object has only one owner, so delete {name} or leave the object out of one of both bundles"
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

    /// The BundleDeployment `a` with the uid `1`.
    fn living() -> LivingDeployments {
        [("a".to_owned(), "1".to_owned())].into_iter().collect()
    }

    /// A ConfigMap `n/c` with labels, annotations, and an entry of ours for each of `operations`.
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
        let stranger = || Owner::Other("field manager kubectl, not Windlass".to_owned());
        let copied = |name: &str| {
            let words = "field manager kubectl, not Windlass";
            Owner::Other(format!(
                "{words} (its label windlass.dev/bundle-deployment={name} was copied)"
            ))
        };
        let (fits, of_another, of_another_place) = ("1/ConfigMap/n/c", "2/ConfigMap/n/c", "1/ConfigMap/m/c");
        for (label, mark, operations, expected) in [
            ("a", fits, &["Apply"][..], owned()),
            // A crash between the creation and the first apply.
            ("a", fits, &["Update"], owned()),
            // The release before.
            ("a", "", &["Apply"], owned()),
            // Copies: without our entry, or with it by a backup.
            ("a", fits, &[], copied("a")),
            ("a", "", &[], copied("a")),
            ("a", of_another_place, &["Apply"], copied("a")),
            ("a", of_another_place, &[], copied("a")),
            ("a", "garbage", &["Apply"], copied("a")),
            // A BundleDeployment that is gone, or was made again.
            ("b", of_another, &["Apply"], orphaned("b")),
            ("b", "", &["Apply"], orphaned("b")),
            ("b", "", &[], copied("b")),
            ("a", of_another, &["Apply"], orphaned("a")),
            // Somebody has changed the label.
            ("b", fits, &["Apply"], owned()),
            // The label is lost.
            ("", fits, &["Apply"], owned()),
            ("", of_another, &["Apply"], Owner::Erased),
            ("", "", &["Apply"], Owner::Erased),
            ("", of_another_place, &["Apply"], stranger()),
            ("", fits, &["Update"], stranger()),
            ("", "", &[], stranger()),
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
                "nobody",
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
