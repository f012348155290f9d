//! Which kinds carry CA bundles, and where.

use serde_json::Value;
use windlass_object::{ObjectKey, object};

use super::Holder;

/// Where one kind keeps its CA bundles. In any version of its group: the paths are the same in all that are served.
#[derive(Debug, PartialEq, Eq)]
pub struct TargetKind {
    /// The API group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The list whose items hold one CA bundle each; `None` where the object holds one.
    pub list: Option<&'static str>,
    /// From the object, or the item of the list, to what holds `caBundle` beside `service` or `url`.
    pub holder: &'static str,
    /// A field and the value that it must have for a CA bundle to be allowed.
    pub only_if: Option<(&'static str, &'static str)>,
    /// Whether our entry in `metadata.managedFields` keeps the owner from what it may do, and must go.
    pub needs_release: bool,
}

/// Every kind that carries CA bundles.
pub const KINDS: &[TargetKind] = &[
    TargetKind {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        list: None,
        holder: "/spec/conversion/webhook/clientConfig",
        // The API server refuses a client configuration with strategy None.
        only_if: Some(("/spec/conversion/strategy", "Webhook")),
        // An owner that applies `strategy: None` is refused while anybody else owns a field of the webhook.
        needs_release: true,
    },
    webhooks("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    webhooks("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    TargetKind {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        list: None,
        holder: "/spec",
        only_if: None,
        needs_release: false,
    },
    TargetKind {
        group: "runtime.cluster.x-k8s.io",
        kind: "ExtensionConfig",
        list: None,
        holder: "/spec/clientConfig",
        only_if: None,
        needs_release: false,
    },
    webhooks("config.karmada.io", "ResourceInterpreterWebhookConfiguration"),
];

const fn webhooks(group: &'static str, kind: &'static str) -> TargetKind {
    TargetKind {
        group,
        kind,
        list: Some("/webhooks"),
        holder: "/clientConfig",
        only_if: None,
        needs_release: false,
    }
}

// === impl TargetKind ===

impl TargetKind {
    /// The entry of [`KINDS`] for `target`.
    pub fn of(target: &Value) -> Option<&'static Self> {
        let key = ObjectKey::of(target)?;
        KINDS
            .iter()
            .find(|kind| kind.group == key.group() && kind.kind == key.kind)
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
                let guards = guards.iter().cloned().chain([name]).collect();
                Holder::at(target, item_pointer + self.holder, guards)
            })
            .collect()
    }
}
