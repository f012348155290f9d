//! The objects of a ClusterServiceVersion, found by their owner references, their labels, and its list of
//! CRDs.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::object;

use crate::webhook_callers::called_services;

/// Annotations of OLM on CRDs: `namespace/name` of each ClusterServiceVersion that installed it.
const INSTALLED_ALONGSIDE: &str = "operatorframework.io/installed-alongside-";

/// The kinds that OLM's finalizer deletes by label, and those that OLM deletes after a ClusterServiceVersion
/// is deleted.
pub const CLUSTER_SCOPED: [(&str, &str); 5] = [
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
    ("apiregistration.k8s.io/v1", "APIService"),
];

/// The kinds that OLM creates in the namespace of the operator. Some objects may come from the bundle.
const NAMESPACED: [(&str, &str); 9] = [
    ("v1", "ServiceAccount"),
    ("v1", "Service"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("apps/v1", "Deployment"),
    ("operators.coreos.com/v2", "OperatorCondition"),
    ("policy/v1", "PodDisruptionBudget"),
];

/// The namespace in which OLM binds the role for reading the API server's authentication configuration.
const SYSTEM: &str = "kube-system";

const CRD: &str = "CustomResourceDefinition";

/// What identifies the objects of a ClusterServiceVersion.
#[derive(Clone, Debug)]
pub struct CsvObjects<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
    crds: BTreeSet<&'a str>,
    readers: BTreeSet<String>,
}

impl<'a> CsvObjects<'a> {
    /// Reads what identifies the objects of `csv`.
    pub fn from_csv(csv: &'a Value) -> Self {
        let text = |path| object::text(csv, path).unwrap_or_default();
        let crds = object::items(csv, "/spec/customresourcedefinitions/owned").iter();
        let deployments = object::items(csv, "/spec/install/spec/deployments").iter();
        let deployments = deployments.filter_map(|deployment| object::text(deployment, "/name"));
        Self {
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            uid: text("/metadata/uid"),
            crds: crds.filter_map(|crd| object::text(crd, "/name")).collect(),
            readers: deployments
                .map(|name| format!("{}-service-auth-reader", name.replace('.', "-")))
                .collect(),
        }
    }

    /// Returns the apiVersion, the kind, and for namespaced kinds the namespace, to list. `namespace` is that
    /// of the ClusterServiceVersion.
    pub fn kinds(namespace: &str) -> impl Iterator<Item = (&'static str, &'static str, Option<&str>)> {
        let cluster = CLUSTER_SCOPED
            .into_iter()
            .chain([("apiextensions.k8s.io/v1", CRD)]);
        let cluster = cluster.map(|(api_version, kind)| (api_version, kind, None));
        let own = NAMESPACED.into_iter();
        let own = own.map(move |(api_version, kind)| (api_version, kind, Some(namespace)));
        let reader = ("rbac.authorization.k8s.io/v1", "RoleBinding", Some(SYSTEM));
        cluster.chain(own).chain([reader])
    }

    /// Reports whether `live` belongs to the ClusterServiceVersion.
    pub fn contains(&self, live: &Value) -> bool {
        let namespace = object::text(live, "/metadata/namespace");
        if is_crd(live) {
            return self.owns_crd(live);
        }
        let label = |name| object::label(live, name);
        let is_labelled = label("olm.owner") == Some(self.name)
            && label("olm.owner.namespace") == Some(self.namespace)
            && label("olm.owner.kind") == Some("ClusterServiceVersion");
        match namespace {
            None => is_labelled,
            Some(namespace) if namespace == self.namespace => is_labelled || self.owns(live),
            // On objects in other namespaces, OLM records only the name of the owner.
            Some(SYSTEM) => self.reads_authentication(live),
            Some(_) => false,
        }
    }

    fn owns(&self, live: &Value) -> bool {
        let owners = object::items(live, "/metadata/ownerReferences");
        owners
            .iter()
            .any(|owner| object::text(owner, "/uid") == Some(self.uid))
    }

    /// Reports whether a CRD was installed with the ClusterServiceVersion, or, without such annotations, is
    /// in its list of owned CRDs.
    fn owns_crd(&self, crd: &Value) -> bool {
        let name = object::text(crd, "/metadata/name").unwrap_or_default();
        let annotations = crd.pointer("/metadata/annotations").and_then(Value::as_object);
        let mut alongside = annotations
            .into_iter()
            .flatten()
            .filter(|(name, _)| name.starts_with(INSTALLED_ALONGSIDE))
            .filter_map(|(_, csv)| csv.as_str())
            .peekable();
        let own = format!("{}/{}", self.namespace, self.name);
        self.crds.contains(name) && (alongside.peek().is_none() || alongside.any(|csv| csv == own))
    }

    fn reads_authentication(&self, live: &Value) -> bool {
        let subjects = object::items(live, "/subjects");
        let is_here = |subject: &Value| object::text(subject, "/namespace") == Some(self.namespace);
        object::text(live, "/kind") == Some("RoleBinding")
            && object::text(live, "/metadata/name").is_some_and(|name| self.readers.contains(name))
            && object::label(live, "olm.managed") == Some("true")
            && subjects.iter().all(is_here)
    }
}

pub(super) fn is_crd(live: &Value) -> bool {
    object::text(live, "/kind") == Some(CRD)
}

/// Returns the Service whose certificate a Secret holds, by OLM's naming scheme.
pub(super) fn service_of_secret(live: &Value) -> Option<&str> {
    let name =
        object::text(live, "/metadata/name").filter(|_| object::text(live, "/kind") == Some("Secret"))?;
    name.strip_suffix("-cert")
        .filter(|service| service.ends_with("-service"))
}

/// Returns the Service that webhooks or a conversion call, as `namespace/name`; `None` if they call several.
pub(super) fn only_called_service(live: &Value) -> Option<String> {
    let mut services = called_services(live).into_iter();
    let (namespace, name) = services.next()?;
    services.next().is_none().then(|| format!("{namespace}/{name}"))
}
