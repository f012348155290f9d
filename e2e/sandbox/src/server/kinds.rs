//! The kinds that are served: the built-in ones from one table, custom ones from their CRDs.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use parking_lot::RwLock;

use crate::{crd::Definition, storage::Collection};

/// A resource as it is served in one version.
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

/// Every resource that is served.
#[derive(Default)]
pub struct Kinds {
    custom: RwLock<BTreeMap<(String, String), Custom>>,
}

/// A custom resource and when its CRD last changed.
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

/// The built-in kinds: those that are acted upon as in a real cluster, or that nothing needs to act upon.
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

// === impl ServedResource ===

impl ServedResource {
    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `resource.group`, as error messages name it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// `Kind.group`, as error messages name it.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// Whether `status` is written apart from the rest.
    pub fn has_status(&self) -> bool {
        self.subresources
            .iter()
            .any(|subresource| subresource == "status")
    }

    /// The group under which objects are stored: events of both groups are the same objects.
    pub fn storage_group(&self) -> &str {
        if self.resource == "events" {
            ""
        } else {
            &self.group
        }
    }

    /// Its objects in a namespace, or all of them where that is empty.
    pub fn collection<'a>(&'a self, namespace: &'a str) -> Collection<'a> {
        Collection {
            group: self.storage_group(),
            resource: &self.resource,
            namespace: (!namespace.is_empty()).then_some(namespace),
        }
    }

    /// The apiVersion in which objects are stored.
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

// === impl Kinds ===

impl Kinds {
    /// A resource in one version; `None` when it is not served.
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

    /// Everything that is served, built-in kinds first, each group's preferred version first.
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

    /// When the CRD of a resource last changed.
    pub fn changed_at(&self, group: &str, resource: &str) -> Option<Instant> {
        Some(
            self.custom
                .read()
                .get(&(group.to_owned(), resource.to_owned()))?
                .changed,
        )
    }

    /// Counts the changes of a CRD: a watch of its objects ends when this moves on.
    pub fn epoch(&self, group: &str, resource: &str) -> u64 {
        self.custom
            .read()
            .get(&(group.to_owned(), resource.to_owned()))
            .map_or(0, |custom| custom.epoch)
    }

    /// Serves a custom resource, or serves it differently from now on.
    pub fn establish(&self, definition: Arc<Definition>) {
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

    /// No longer serves a custom resource.
    pub fn withdraw(&self, group: &str, resource: &str) {
        self.custom
            .write()
            .remove(&(group.to_owned(), resource.to_owned()));
    }
}

/// The kind's name as the tables have it; custom kinds have no entry there.
pub(super) fn built_in_kind(kind: &str) -> &'static str {
    BUILT_IN.iter().find(|row| row.2 == kind).map_or("", |row| row.2)
}
