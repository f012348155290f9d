//! Which kinds carry CA bundles, and where.

use serde_json::Value;
use windlass_object::object;

use super::Holder;

/// A kind that carries CA bundles, and where. The paths are the same in all versions of its group that are served.
#[derive(Debug, PartialEq, Eq)]
pub struct TargetKind {
    /// The API group, for example `apiregistration.k8s.io`.
    pub group: &'static str,
    /// The version that is watched and patched.
    pub version: &'static str,
    /// The versions that are watched and patched where that one is not served.
    pub older: &'static [&'static str],
    /// For example `APIService`.
    pub kind: &'static str,
    /// The resource, as paths and RBAC rules name it.
    pub plural: &'static str,
    /// The list whose items hold one CA bundle each; `None` where the object holds one.
    pub list: Option<&'static str>,
    /// From the object, or the item of the list, to what holds `caBundle` beside `service` or `url`.
    pub holder: &'static str,
    /// A field and the value that it must have for a CA bundle to be allowed.
    pub only_if: Option<(&'static str, &'static str)>,
    /// What an owner that applies the object server-side may drop only while nobody else owns a part of it: a pointer into the
    /// sets of fields in `metadata.managedFields`.
    pub dropped_as_a_whole: Option<&'static str>,
}

/// Every kind that carries CA bundles. A row is all that a kind needs: watches, RBAC rules and patches follow from it.
pub const KINDS: &[TargetKind] = &[
    TargetKind {
        // The API server refuses a client configuration with strategy None.
        only_if: Some(("/spec/conversion/strategy", "Webhook")),
        // An owner that applies `strategy: None` is refused while anybody else owns a field of the webhook.
        dropped_as_a_whole: Some("/f:spec/f:conversion"),
        ..single(
            [
                "apiextensions.k8s.io",
                "v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
            ],
            "/spec/conversion/webhook/clientConfig",
        )
    },
    webhooks([
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ]),
    webhooks([
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ]),
    single(
        ["apiregistration.k8s.io", "v1", "APIService", "apiservices"],
        "/spec",
    ),
    TargetKind {
        // Cluster API before 1.11.
        older: &["v1alpha1"],
        ..single(
            [
                "runtime.cluster.x-k8s.io",
                "v1beta2",
                "ExtensionConfig",
                "extensionconfigs",
            ],
            "/spec/clientConfig",
        )
    },
    webhooks([
        "config.karmada.io",
        "v1alpha1",
        "ResourceInterpreterWebhookConfiguration",
        "resourceinterpreterwebhookconfigurations",
    ]),
];

/// A kind whose objects hold one CA bundle.
const fn single([group, version, kind, plural]: [&'static str; 4], holder: &'static str) -> TargetKind {
    TargetKind {
        group,
        version,
        older: &[],
        kind,
        plural,
        list: None,
        holder,
        only_if: None,
        dropped_as_a_whole: None,
    }
}

/// A kind whose objects hold a CA bundle for each of their webhooks.
const fn webhooks(names: [&'static str; 4]) -> TargetKind {
    TargetKind {
        list: Some("/webhooks"),
        ..single(names, "/clientConfig")
    }
}

// === impl TargetKind ===

impl TargetKind {
    /// `group/version`, the version being the one that is watched and patched.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The entry of [`KINDS`] for `target`.
    pub fn of(target: &Value) -> Option<&'static Self> {
        let (group, _) = object::group_and_version(object::text(target, "/apiVersion")?);
        let (name, _) = (
            object::text(target, "/kind")?,
            object::text(target, "/metadata/name")?,
        );
        KINDS.iter().find(|kind| kind.group == group && kind.kind == name)
    }

    /// All places of `target` where a CA bundle may be.
    pub fn holders<'a>(&self, target: &'a Value) -> Vec<Holder<'a>> {
        let mut guards = Vec::new();
        if let Some((field, desired)) = self.only_if {
            match target.pointer(field) {
                Some(value) if value == desired => guards.push((field.to_owned(), value)),
                _ => return Vec::new(),
            }
        }
        let Some(list) = self.list else {
            return Holder::at(target, self.holder.to_owned(), guards)
                .into_iter()
                .collect();
        };
        object::items(target, list)
            .iter()
            .enumerate()
            .filter_map(|(index, item)| {
                let item_pointer = format!("{list}/{index}");
                // The index says which entry only as long as the name is there.
                let name = (format!("{item_pointer}/name"), item.get("name")?);
                let entry = name.1.as_str();
                let guards = guards.iter().cloned().chain([name]).collect();
                let mut holder = Holder::at(target, item_pointer + self.holder, guards)?;
                holder.entry = entry;
                Some(holder)
            })
            .collect()
    }
}
