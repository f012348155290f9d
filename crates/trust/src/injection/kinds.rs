//! The kinds that have CA bundles, and the fields that hold them.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::Value;
use windlass_object::{ca_injectors::CaInjectors, object};

use super::{
    Holder,
    place::{CaBundlePlace, Encoding, Surroundings},
};

/// A kind that has CA bundles, and the fields that hold them. The fields are the same in all served versions
/// of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetKind {
    /// The API group, for example `apiregistration.k8s.io`; empty for the core group.
    pub group: Cow<'static, str>,
    /// The preferred version to watch and patch.
    pub version: Cow<'static, str>,
    /// Versions to watch and patch if the preferred one is not served.
    pub older: &'static [&'static str],
    /// The kind, for example `APIService`.
    pub kind: Cow<'static, str>,
    /// The plural name, as used in paths and RBAC rules.
    pub plural: Cow<'static, str>,
    /// The fields that hold CA bundles.
    pub places: Vec<CaBundlePlace>,
    /// A field and the value that it must have for a CA bundle to be allowed.
    pub only_if: Option<(&'static str, &'static str)>,
    /// JSON pointer into `fieldsV1` of `metadata.managedFields`: an owner that uses server-side apply can
    /// remove this part only if no other field manager owns any of it.
    pub dropped_as_a_whole: Option<&'static str>,
    /// Who reads the CA bundles.
    pub reader: BundleReader,
}

/// Who reads the CA bundles of a kind, which determines when a new one takes effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleReader {
    /// Clients that watch the objects, such as API servers.
    #[default]
    Watch,
    /// Programs that read them from files, which the kubelet updates.
    Files,
}

/// All kinds of targets in a cluster: [`KINDS`] and the added ones. Also holds which other CA injectors
/// Windlass replaces, and which of these are running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetKinds {
    added: Vec<TargetKind>,
    replaced: CaInjectors,
    running: CaInjectors,
}

/// The built-in kinds with CA bundles. Watches, RBAC rules and patches are derived from this table.
pub static KINDS: LazyLock<Vec<TargetKind>> = LazyLock::new(|| {
    vec![
        TargetKind {
            // The API server rejects a client configuration with strategy None.
            only_if: Some(("/spec/conversion/strategy", "Webhook")),
            // It also rejects an apply of `strategy: None` while another field manager owns a field of the
            // webhook.
            dropped_as_a_whole: Some("/f:spec/f:conversion"),
            ..kind(
                [
                    "apiextensions.k8s.io",
                    "v1",
                    "CustomResourceDefinition",
                    "customresourcedefinitions",
                ],
                vec![CaBundlePlace::client_config(
                    None,
                    "/spec/conversion/webhook/clientConfig",
                )],
            )
        },
        kind(
            [
                "admissionregistration.k8s.io",
                "v1",
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
            ],
            webhooks(),
        ),
        kind(
            [
                "admissionregistration.k8s.io",
                "v1",
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
            ],
            webhooks(),
        ),
        kind(
            ["apiregistration.k8s.io", "v1", "APIService", "apiservices"],
            vec![CaBundlePlace::client_config(None, "/spec")],
        ),
        TargetKind {
            // Served by Cluster API before 1.11.
            older: &["v1alpha1"],
            ..kind(
                [
                    "runtime.cluster.x-k8s.io",
                    "v1beta2",
                    "ExtensionConfig",
                    "extensionconfigs",
                ],
                vec![CaBundlePlace::client_config(None, "/spec/clientConfig")],
            )
        },
        kind(
            [
                "config.karmada.io",
                "v1alpha1",
                "ResourceInterpreterWebhookConfiguration",
                "resourceinterpreterwebhookconfigurations",
            ],
            webhooks(),
        ),
        TargetKind {
            reader: BundleReader::Files,
            ..kind(
                ["", "v1", "ConfigMap", "configmaps"],
                // The key that trust-manager and others write, and that pods mount.
                vec![CaBundlePlace {
                    list: None,
                    holder: Cow::Borrowed("/data"),
                    field: Cow::Borrowed(CONFIG_MAP_KEY),
                    encoding: Encoding::Pem,
                    surroundings: Surroundings::Nothing,
                }],
            )
        },
    ]
});

/// The key of a ConfigMap that holds a CA bundle.
pub const CONFIG_MAP_KEY: &str = "ca-bundle.crt";

/// One CA bundle per webhook.
fn webhooks() -> Vec<CaBundlePlace> {
    vec![CaBundlePlace::client_config(Some("/webhooks"), "/clientConfig")]
}

fn kind([group, version, kind, plural]: [&'static str; 4], places: Vec<CaBundlePlace>) -> TargetKind {
    TargetKind {
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        older: &[],
        kind: Cow::Borrowed(kind),
        plural: Cow::Borrowed(plural),
        places,
        only_if: None,
        dropped_as_a_whole: None,
        reader: BundleReader::Watch,
    }
}

impl TargetKind {
    /// Returns `group/version` of the preferred version, or only the version for the core group.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the entry of [`KINDS`] for `target`.
    pub fn from_object(target: &Value) -> Option<&'static Self> {
        let (group, kind) = group_and_kind(target)?;
        KINDS.iter().find(|known| known.is(group, kind))
    }

    /// Reports whether this target kind has that group and kind.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    /// Reports whether most objects of the kind are not targets, so that only an annotation identifies a
    /// target.
    pub fn is_common(&self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| place.surroundings != Surroundings::Server)
    }

    /// Returns all places of `target` where a CA bundle may be.
    pub fn holders<'a>(&'a self, target: &'a Value) -> Vec<Holder<'a>> {
        let mut guards = Vec::new();
        if let Some((field, desired)) = self.only_if {
            match target.pointer(field) {
                Some(value) if value == desired => guards.push((field.to_owned(), value)),
                _ => return Vec::new(),
            }
        }
        let places = self.places.iter();
        places
            .flat_map(|place| Holder::all_at(target, place, &guards))
            .collect()
    }
}

impl TargetKinds {
    /// Returns [`KINDS`] and `added`.
    pub fn new(added: impl IntoIterator<Item = TargetKind>) -> Self {
        Self::default().with_added(added)
    }

    /// Replaces the added kinds.
    #[must_use]
    pub fn with_added(self, added: impl IntoIterator<Item = TargetKind>) -> Self {
        let added = added.into_iter().collect();
        Self { added, ..self }
    }

    /// Sets the CA injectors that Windlass replaces: it honors their annotations.
    #[must_use]
    pub fn with_replaced_injectors(self, replaced: CaInjectors) -> Self {
        Self { replaced, ..self }
    }

    /// Sets the replaced CA injectors that are running nevertheless: Windlass does not write their targets.
    #[must_use]
    pub fn with_running_injectors(self, running: CaInjectors) -> Self {
        Self { running, ..self }
    }

    /// Returns the CA injectors that Windlass replaces.
    pub fn replaced_injectors(&self) -> &CaInjectors {
        &self.replaced
    }

    /// Returns the replaced CA injectors that are running.
    pub fn running_injectors(&self) -> &CaInjectors {
        &self.running
    }

    /// Returns all kinds that can be targets, built-in and added ones.
    pub fn all(&self) -> impl Iterator<Item = &TargetKind> {
        KINDS.iter().chain(&self.added)
    }

    /// Returns the added kinds.
    pub fn added(&self) -> &[TargetKind] {
        &self.added
    }

    /// Returns the kind with this group and name.
    pub fn find(&self, group: &str, kind: &str) -> Option<&TargetKind> {
        self.all().find(|known| known.is(group, kind))
    }

    /// Returns the kind of `target`.
    pub fn kind_of(&self, target: &Value) -> Option<&TargetKind> {
        let (group, kind) = group_and_kind(target)?;
        self.find(group, kind)
    }
}

/// Returns group and kind of an object that has a name.
fn group_and_kind(target: &Value) -> Option<(&str, &str)> {
    let (group, _) = object::group_and_version(object::text(target, "/apiVersion")?);
    let (kind, _) = (
        object::text(target, "/kind")?,
        object::text(target, "/metadata/name")?,
    );
    Some((group, kind))
}
