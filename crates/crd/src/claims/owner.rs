//! Whose an object in the cluster is, by the marks that installers leave on what they install.

use std::fmt;

use serde_json::Value;
use windlass_object::{ObjectKey, names, object, patch};

/// To whom an object belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// To the BundleDeployment of that name.
    BundleDeployment(String),
    /// To nobody any more: it stayed behind when its BundleDeployment went.
    Released,
    /// To somebody else, in words.
    Other(String),
}

/// Labels of OLM v1 (`internal/operator-controller/labels`): the kind and the name of what the object was installed for.
const OLM_OWNER_KIND: &str = "olm.operatorframework.io/owner-kind";
const OLM_OWNER_NAME: &str = "olm.operatorframework.io/owner-name";

/// Annotations of OLM v0 on CRDs (`pkg/controller/operators/catalog`): `namespace/name` of each
/// ClusterServiceVersion that came with it.
const OLM_INSTALLED_ALONGSIDE: &str = "operatorframework.io/installed-alongside-";

/// Labels of OLM v0 on the components of an operator: what follows is `package.namespace`.
const OLM_COMPONENT: &str = "operators.coreos.com/";

/// Labels of OLM v0 (`pkg/controller/install`): the ClusterServiceVersion that the object was installed for.
const OLM_OWNER: &str = "olm.owner";
const OLM_OWNER_NAMESPACE: &str = "olm.owner.namespace";

/// Label of OLM v0 on everything that it installs.
const OLM_MANAGED: &str = "olm.managed";

/// Marks of Helm 3 (`pkg/action/validate.go`).
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const HELM_RELEASE: &str = "meta.helm.sh/release-name";
const HELM_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Mark of Argo CD: `application:group/Kind:namespace/name`.
const ARGO_TRACKING: &str = "argocd.argoproj.io/tracking-id";

/// Marks of Flux.
const FLUX: [(&str, &str); 2] = [
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
];

// === impl Owner ===

impl Owner {
    /// Reads the marks of `object`; those of BundleDeployments count before those of others.
    pub fn of(object: &Value) -> Self {
        if let Some(name) = object::label(object, names::BUNDLE_DEPLOYMENT) {
            return Self::BundleDeployment(name.to_owned());
        }
        let find = |marks: &[fn(&Value) -> Option<String>]| marks.iter().find_map(|mark| mark(object));
        if let Some(installer) = find(&[olm, helm, controller, git_ops]) {
            return Self::Other(installer);
        }
        if object::annotation(object, names::RELEASED_BY).is_some() {
            return Self::Released;
        }
        Self::Other(find(&[family]).unwrap_or_else(|| stranger(object)))
    }

    /// Whether `object` was applied for a BundleDeployment, and neither belongs to one nor was let go by one: whoever
    /// replaced it has left the marks out.
    pub fn is_erased(object: &Value) -> bool {
        let is_marked = object::label(object, names::BUNDLE_DEPLOYMENT).is_some()
            || object::annotation(object, names::RELEASED_BY).is_some();
        !is_marked && patch::applied_by(object, names::INSTALL)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BundleDeployment(name) => write!(f, "the BundleDeployment {name}"),
            Self::Released => f.write_str("nobody"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

fn olm(object: &Value) -> Option<String> {
    let label = |name| object::label(object, name);
    if let (Some(kind), Some(name)) = (label(OLM_OWNER_KIND), label(OLM_OWNER_NAME)) {
        return Some(format!("OLM's {kind} {name}"));
    }
    if let Some(name) = label(OLM_OWNER) {
        let namespace = label(OLM_OWNER_NAMESPACE).unwrap_or_default();
        return Some(format!("OLM's ClusterServiceVersion {namespace}/{name}"));
    }
    let alongside = marks(object, "annotations", OLM_INSTALLED_ALONGSIDE);
    if let Some((_, csv)) = alongside.last() {
        return Some(format!("OLM's ClusterServiceVersion {csv}"));
    }
    let components = marks(object, "labels", OLM_COMPONENT);
    let (component, _) = components.first()?;
    Some(format!("OLM's operator {component}"))
}

fn helm(object: &Value) -> Option<String> {
    let release = object::annotation(object, HELM_RELEASE)?;
    Some(match object::annotation(object, HELM_NAMESPACE) {
        Some(namespace) => format!("the Helm release {namespace}/{release}"),
        None => format!("the Helm release {release}"),
    })
}

/// The object that the garbage collector would take this one with.
fn controller(object: &Value) -> Option<String> {
    let references = object::items(object, "/metadata/ownerReferences");
    let controls = |reference: &&Value| reference.get("controller") == Some(&Value::Bool(true));
    let reference = references.iter().find(controls).or(references.first())?;
    let kind = object::text(reference, "/kind")?;
    Some(format!("the {kind} {}", object::text(reference, "/name")?))
}

fn git_ops(object: &Value) -> Option<String> {
    if let Some(tracking) = object::annotation(object, ARGO_TRACKING) {
        let application = tracking.split(':').next().unwrap_or_default();
        return Some(format!("Argo CD's Application {application}"));
    }
    FLUX.into_iter().find_map(|(group, kind)| {
        let name = object::label(object, &format!("{group}/name"))?;
        let namespace = object::label(object, &format!("{group}/namespace")).unwrap_or_default();
        Some(format!("Flux's {kind} {namespace}/{name}"))
    })
}

/// What kind of installer it is, by labels that the bundle itself may have brought along.
fn family(object: &Value) -> Option<String> {
    if object::label(object, MANAGED_BY) == Some("Helm") {
        return Some("a Helm release".to_owned());
    }
    (object::label(object, OLM_MANAGED) == Some("true")).then(|| "OLM".to_owned())
}

/// Who wrote it, where nobody says whose it is.
fn stranger(object: &Value) -> String {
    let managers: Vec<_> = object::items(object, "/metadata/managedFields")
        .iter()
        .filter(|entry| entry.get("subresource").is_none())
        .filter_map(|entry| object::text(entry, "/manager"))
        .filter(|manager| !manager.starts_with("windlass-"))
        .collect();
    match managers.first() {
        Some(manager) => format!("field manager {manager}, not Windlass"),
        None => "an unknown owner, not Windlass".to_owned(),
    }
}

/// The labels or annotations whose names begin with `prefix`: what follows, and the value.
fn marks<'a>(object: &'a Value, field: &str, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let marks = object["metadata"][field].as_object();
    marks
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.as_str()?)))
        .collect()
}

/// Says whose an object is, and how to get it.
pub fn foreign(object: &ObjectKey, owner: &Owner) -> String {
    let way_out = match owner {
        Owner::BundleDeployment(_) => "an object has only one owner".to_owned(),
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

    #[test]
    fn the_marks_of_every_installer_are_read() {
        for (metadata, expected) in [
            (
                json!({"labels": {"windlass.dev/bundle-deployment": "a", "app.kubernetes.io/managed-by": "Helm"}}),
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
            assert_eq!(Owner::of(&object).to_string(), expected, "{metadata}");
        }
    }

    #[test]
    fn labels_of_the_bundle_itself_keep_nothing_that_was_released() {
        let object = json!({"metadata": {"annotations": {"windlass.dev/released-by": "a"},
            "labels": {"app.kubernetes.io/managed-by": "Helm", "olm.managed": "true"}}});
        assert_eq!(Owner::of(&object), Owner::Released);
    }

    #[test]
    fn marks_can_only_be_erased_from_what_was_applied() {
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
    fn what_another_installer_has_taken_meanwhile_is_not_free() {
        let object = json!({"metadata": {"annotations": {"windlass.dev/released-by": "a",
            "meta.helm.sh/release-name": "r"}}});
        assert_eq!(Owner::of(&object), Owner::Other("the Helm release r".to_owned()));
    }
}
