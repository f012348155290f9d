//! The served kinds: built-in ones from a table, custom ones from their CRDs.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use parking_lot::RwLock;

use crate::{crd::Definition, storage::Collection};

/// A resource served in one version.
#[derive(Clone, Debug)]
pub struct ServedResource {
    /// The API group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub resource: String,
    /// The singular name.
    pub singular: String,
    /// Short names, for kubectl.
    pub short_names: Vec<String>,
    /// Categories, for kubectl.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Subresources.
    pub subresources: Vec<String>,
    /// The CRD, for custom resources.
    pub definition: Option<Arc<Definition>>,
}

/// All served resources.
#[derive(Default)]
pub struct Kinds {
    custom: RwLock<BTreeMap<(String, String), Custom>>,
}

/// A custom resource, and when its CRD last changed.
struct Custom {
    definition: Arc<Definition>,
    changed: Instant,
    epoch: u64,
}

/// One row of the table: group, version, kind, plural, short names, namespaced, subresources.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    bool,
    &'static str,
);

/// The built-in kinds: those that the sandbox acts on like a real cluster, and those that need no controller.
const BUILT_IN: &[Row] = &[
    ("", "v1", "ConfigMap", "configmaps", "cm", true, ""),
    ("", "v1", "Endpoints", "endpoints", "ep", true, ""),
    ("", "v1", "Event", "events", "ev", true, ""),
    (
        "",
        "v1",
        "Namespace",
        "namespaces",
        "ns",
        false,
        "status finalize",
    ),
    ("", "v1", "Node", "nodes", "no", false, "status"),
    ("", "v1", "Pod", "pods", "po", true, "status binding eviction"),
    ("", "v1", "Secret", "secrets", "", true, ""),
    ("", "v1", "Service", "services", "svc", true, "status"),
    ("", "v1", "ServiceAccount", "serviceaccounts", "sa", true, "token"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "",
        false,
        "",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "",
        false,
        "",
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
        false,
        "status",
    ),
    (
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        "apiservices",
        "",
        false,
        "status",
    ),
    (
        "apps",
        "v1",
        "Deployment",
        "deployments",
        "deploy",
        true,
        "status scale",
    ),
    (
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
        "rs",
        true,
        "status scale",
    ),
    ("coordination.k8s.io", "v1", "Lease", "leases", "", true, ""),
    (
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        "",
        true,
        "",
    ),
    ("events.k8s.io", "v1", "Event", "events", "ev", true, ""),
    (
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        "ing",
        true,
        "status",
    ),
    (
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        "netpol",
        true,
        "",
    ),
    (
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        true,
        "status",
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        "",
        false,
        "",
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "",
        false,
        "",
    ),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", "", true, ""),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        "",
        true,
        "",
    ),
    (
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        "pc",
        false,
        "",
    ),
    (
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        "sc",
        false,
        "",
    ),
];

impl ServedResource {
    /// Returns `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns `resource.group`, as in error messages.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// Returns `Kind.group`, as in error messages.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// Reports whether `status` is a subresource.
    pub fn has_status(&self) -> bool {
        self.subresources
            .iter()
            .any(|subresource| subresource == "status")
    }

    /// Returns the group under which objects are stored: events of both groups are the same objects.
    pub fn storage_group(&self) -> &str {
        if self.resource == "events" {
            ""
        } else {
            &self.group
        }
    }

    /// Returns the collection of its objects in a namespace, or in all if it is empty.
    pub fn collection<'a>(&'a self, namespace: &'a str) -> Collection<'a> {
        Collection {
            group: self.storage_group(),
            resource: &self.resource,
            namespace: (!namespace.is_empty()).then_some(namespace),
        }
    }

    /// Returns the apiVersion in which objects are stored.
    pub fn storage_api_version(&self) -> String {
        match &self.definition {
            Some(definition) => format!("{}/{}", self.group, definition.storage_version()),
            None => self.api_version(),
        }
    }

    fn built_in(row: &Row) -> Self {
        let (group, version, kind, resource, short_names, namespaced, subresources) = *row;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let all = ["pods", "services", "deployments", "replicasets"];
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            resource: resource.to_owned(),
            singular: kind.to_lowercase(),
            short_names: words(short_names),
            categories: words(if all.contains(&resource) { "all" } else { "" }),
            namespaced,
            subresources: words(subresources),
            definition: None,
        }
    }

    fn custom(definition: &Arc<Definition>, version: &str) -> Option<Self> {
        let served = definition.version(version).filter(|version| version.served)?;
        Some(Self {
            group: definition.group.clone(),
            version: version.to_owned(),
            kind: definition.names.kind.clone(),
            resource: definition.names.plural.clone(),
            singular: definition.names.singular.clone(),
            short_names: definition.names.short_names.clone(),
            categories: definition.names.categories.clone(),
            namespaced: definition.namespaced,
            subresources: served.subresources.clone(),
            definition: Some(definition.clone()),
        })
    }
}

impl Kinds {
    /// Returns a resource in one version; `None` when it is not served.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<ServedResource> {
        let row = BUILT_IN
            .iter()
            .find(|row| (row.0, row.1, row.3) == (group, version, resource));
        if let Some(row) = row {
            return Some(ServedResource::built_in(row));
        }
        let custom = self.custom.read();
        ServedResource::custom(
            &custom.get(&(group.to_owned(), resource.to_owned()))?.definition,
            version,
        )
    }

    /// Returns all served resources: built-in kinds first, and each group's preferred version first.
    pub fn all(&self) -> Vec<ServedResource> {
        let custom = self.custom.read();
        let custom = custom
            .values()
            .map(|custom| &custom.definition)
            .flat_map(|definition| {
                definition
                    .versions_by_priority()
                    .into_iter()
                    .filter_map(|version| ServedResource::custom(definition, &version))
            });
        BUILT_IN
            .iter()
            .map(ServedResource::built_in)
            .chain(custom)
            .collect()
    }

    /// Returns when the CRD of a resource last changed.
    pub fn changed_at(&self, group: &str, resource: &str) -> Option<Instant> {
        Some(
            self.custom
                .read()
                .get(&(group.to_owned(), resource.to_owned()))?
                .changed,
        )
    }

    /// Returns the number of changes of a CRD. A watch of its objects ends when it changes.
    pub fn epoch(&self, group: &str, resource: &str) -> u64 {
        self.custom
            .read()
            .get(&(group.to_owned(), resource.to_owned()))
            .map_or(0, |custom| custom.epoch)
    }

    /// Starts serving a custom resource, or updates its definition.
    pub fn serve_custom(&self, definition: Arc<Definition>) {
        let key = (definition.group.clone(), definition.names.plural.clone());
        let mut custom = self.custom.write();
        match custom.get_mut(&key) {
            Some(known) if known.definition.spec == definition.spec => known.definition = definition,
            Some(known) => {
                *known = Custom {
                    definition,
                    changed: Instant::now(),
                    epoch: known.epoch + 1,
                };
            }
            None => drop(custom.insert(
                key,
                Custom {
                    definition,
                    changed: Instant::now(),
                    epoch: 0,
                },
            )),
        }
    }

    /// Stops serving a custom resource.
    pub fn remove_custom(&self, group: &str, resource: &str) {
        self.custom
            .write()
            .remove(&(group.to_owned(), resource.to_owned()));
    }
}

/// Returns the static name of a built-in kind; empty for custom kinds.
pub(super) fn built_in_kind(kind: &str) -> &'static str {
    BUILT_IN.iter().find(|row| row.2 == kind).map_or("", |row| row.2)
}
