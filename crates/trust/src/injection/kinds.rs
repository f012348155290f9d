//! Which kinds carry CA bundles, and where.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::Value;
use windlass_object::{ca_injectors::CaInjectors, object};

use super::{
    Holder,
    place::{CaBundlePlace, Encoding, Surroundings},
};

/// A kind that carries CA bundles, and where. The places are the same in all versions of its group that are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetKind {
    /// The API group, for example `apiregistration.k8s.io`; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version that is watched and patched.
    pub version: Cow<'static, str>,
    /// The versions that are watched and patched where that one is not served.
    pub older: &'static [&'static str],
    /// For example `APIService`.
    pub kind: Cow<'static, str>,
    /// The resource, as paths and RBAC rules name it.
    pub plural: Cow<'static, str>,
    /// Where its objects carry CA bundles.
    pub places: Vec<CaBundlePlace>,
    /// A field and the value that it must have for a CA bundle to be allowed.
    pub only_if: Option<(&'static str, &'static str)>,
    /// What an owner that applies the object server-side may drop only while nobody else owns a part of it: a pointer into the
    /// sets of fields in `metadata.managedFields`.
    pub dropped_as_a_whole: Option<&'static str>,
    /// Who reads what its objects carry.
    pub reader: BundleReader,
}

/// Who reads the CA bundles of a kind: how soon they are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleReader {
    /// Who watches the objects, as API servers do.
    #[default]
    Watch,
    /// Programs that get them as files from the kubelet.
    Files,
}

/// The kinds of targets in a cluster: those of [`KINDS`], and those that were added to them; and whom their objects may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetKinds {
    added: Vec<TargetKind>,
    answered: CaInjectors,
    at_work: CaInjectors,
}

/// Every kind that carries CA bundles by itself. A row is all that a kind needs: watches, RBAC rules and patches follow from it.
pub static KINDS: LazyLock<Vec<TargetKind>> = LazyLock::new(|| {
    vec![
        TargetKind {
            // The API server refuses a client configuration with strategy None.
            only_if: Some(("/spec/conversion/strategy", "Webhook")),
            // An owner that applies `strategy: None` is refused while anybody else owns a field of the webhook.
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
            // Cluster API before 1.11.
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
                // The key that trust-manager and others write, and pods mount.
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

/// The key of a ConfigMap that a CA bundle is in.
pub const CONFIG_MAP_KEY: &str = "ca-bundle.crt";

/// A CA bundle for each webhook.
fn webhooks() -> Vec<CaBundlePlace> {
    vec![CaBundlePlace::client_config(Some("/webhooks"), "/clientConfig")]
}

/// A kind of [`KINDS`].
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

// === impl TargetKind ===

impl TargetKind {
    /// `group/version`, or only the version for the core group: that which is watched and patched.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The entry of [`KINDS`] for `target`.
    pub fn of(target: &Value) -> Option<&'static Self> {
        let (group, kind) = named(target)?;
        KINDS.iter().find(|known| known.is(group, kind))
    }

    /// Whether it is of this group, and has this name.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    /// Whether most of its objects are no targets: what a target is, is not told by its kind.
    pub fn is_common(&self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| place.surroundings != Surroundings::Server)
    }

    /// All places of `target` where a CA bundle may be.
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

// === impl TargetKinds ===

impl TargetKinds {
    /// Those of [`KINDS`], and `added`.
    pub fn with(added: impl IntoIterator<Item = TargetKind>) -> Self {
        Self::default().adding(added)
    }

    /// The same with these added in the place of others.
    #[must_use]
    pub fn adding(self, added: impl IntoIterator<Item = TargetKind>) -> Self {
        let added = added.into_iter().collect();
        Self { added, ..self }
    }

    /// The same, for whoever stands in for these injectors: their annotations are answered.
    #[must_use]
    pub fn answering(self, answered: CaInjectors) -> Self {
        Self { answered, ..self }
    }

    /// The same, while these injectors are at work themselves: who asks them is left to them.
    #[must_use]
    pub fn beside(self, at_work: CaInjectors) -> Self {
        Self { at_work, ..self }
    }

    /// The injectors whose annotations are answered.
    pub fn answered(&self) -> &CaInjectors {
        &self.answered
    }

    /// The injectors that are at work themselves.
    pub fn at_work(&self) -> &CaInjectors {
        &self.at_work
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = &TargetKind> {
        KINDS.iter().chain(&self.added)
    }

    /// Those that were added.
    pub fn added(&self) -> &[TargetKind] {
        &self.added
    }

    /// The kind with this name in a group.
    pub fn find(&self, group: &str, kind: &str) -> Option<&TargetKind> {
        self.all().find(|known| known.is(group, kind))
    }

    /// The kind of `target`.
    pub fn of(&self, target: &Value) -> Option<&TargetKind> {
        let (group, kind) = named(target)?;
        self.find(group, kind)
    }
}

/// The group and the kind of an object that has a name.
fn named(target: &Value) -> Option<(&str, &str)> {
    let (group, _) = object::group_and_version(object::text(target, "/apiVersion")?);
    let (kind, _) = (
        object::text(target, "/kind")?,
        object::text(target, "/metadata/name")?,
    );
    Some((group, kind))
}
