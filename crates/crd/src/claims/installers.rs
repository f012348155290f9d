//! Labels and annotations by which other installers mark their objects.

use serde_json::Value;
use windlass_object::object;

/// Labels of OLM v1 (`internal/operator-controller/labels`): kind and name of the owner.
const OLM_OWNER_KIND: &str = "olm.operatorframework.io/owner-kind";
const OLM_OWNER_NAME: &str = "olm.operatorframework.io/owner-name";

/// Annotations of OLM v0 on CRDs (`pkg/controller/operators/catalog`): `namespace/name` of each
/// ClusterServiceVersion with that CRD.
const OLM_INSTALLED_ALONGSIDE: &str = "operatorframework.io/installed-alongside-";

/// Prefix of OLM v0 labels on the components of an operator, followed by `package.namespace`.
const OLM_COMPONENT: &str = "operators.coreos.com/";

/// Labels of OLM v0 (`pkg/controller/install`): the ClusterServiceVersion that owns the object.
const OLM_OWNER: &str = "olm.owner";
const OLM_OWNER_NAMESPACE: &str = "olm.owner.namespace";

/// Label of OLM v0 on everything that it installs.
const OLM_MANAGED: &str = "olm.managed";

/// Labels and annotations of Helm 3 (`pkg/action/validate.go`).
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const HELM_RELEASE: &str = "meta.helm.sh/release-name";
const HELM_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Annotation of Argo CD: `application:group/Kind:namespace/name`.
const ARGO_TRACKING: &str = "argocd.argoproj.io/tracking-id";

/// Label groups and kinds of Flux.
const FLUX: [(&str, &str); 2] = [
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
];

/// Describes the installer that marked an object as its own.
pub(super) fn installer(object: &Value) -> Option<String> {
    let marks: [fn(&Value) -> Option<String>; 4] = [olm, helm, controller, git_ops];
    marks.iter().find_map(|mark| mark(object))
}

/// Describes the owner of an unmarked object, by weaker marks or by the last writer.
pub(super) fn owner_or_writer(object: &Value) -> String {
    installer_kind(object).unwrap_or_else(|| field_manager(object))
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

/// The owner reference whose deletion would garbage-collect this object.
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

/// Returns the kind of installer, by labels that the bundle itself may contain.
fn installer_kind(object: &Value) -> Option<String> {
    if object::label(object, MANAGED_BY) == Some("Helm") {
        return Some("a Helm release".to_owned());
    }
    (object::label(object, OLM_MANAGED) == Some("true")).then(|| "OLM".to_owned())
}

/// Returns the field manager of an object without any marks.
fn field_manager(object: &Value) -> String {
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

/// Returns the labels or annotations with a prefix: the rest of the name, and the value.
fn marks<'a>(object: &'a Value, field: &str, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let marks = object["metadata"][field].as_object();
    marks
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.as_str()?)))
        .collect()
}
