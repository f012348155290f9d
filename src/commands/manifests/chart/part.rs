//! The assignment of manifests to templates, and the values that turn them on.

use super::template;
use crate::commands::manifests::{command::ManifestFile, document::Document};

/// A file in the chart's `templates`.
pub(super) struct Part {
    /// The file name in `templates`.
    pub(super) name: &'static str,
    documents: Vec<Document>,
    /// The value that turns the template on; `None` if it is always on.
    condition: Option<&'static str>,
}

/// Returns the templates. The namespace is left to Helm, and kinds that OLM, Cluster API or Karmada may have
/// installed are left out.
pub(super) fn parts(manifests: impl Iterator<Item = ManifestFile>) -> Vec<Part> {
    manifests.flat_map(split).collect()
}

fn split(ManifestFile { name, documents }: ManifestFile) -> Vec<Part> {
    let part = |condition| Part {
        name,
        documents,
        condition,
    };
    match name {
        "custom-resource-definitions.yaml" | "user-facing-roles.yaml" => vec![part(None)],
        "certificates.yaml" => vec![part(Some("certificates.enabled"))],
        "rbac.yaml" | "deployment.yaml" | "guard.yaml" => vec![part(Some("bundles.enabled"))],
        "policies.yaml" => vec![part(Some("policies.enabled"))],
        "ui.yaml" => vec![part(Some("ui.enabled"))],
        "monitoring.yaml" | "dashboard.yaml" => vec![part(Some("monitoring.enabled"))],
        "namespace.yaml" => part(None).split_around_namespace(),
        _ => Vec::new(),
    }
}

impl Part {
    /// Returns the text of the template.
    ///
    /// # Errors
    ///
    /// When it cannot be written as YAML.
    pub(super) fn text(self) -> anyhow::Result<String> {
        let documents = self.documents.into_iter().map(template);
        let documents = documents.collect::<anyhow::Result<Vec<_>>>()?.join("---\n");
        Ok(match self.condition {
            Some(condition) => format!("{{{{- if .Values.{condition} }}}}\n{documents}{{{{- end }}}}\n"),
            None => documents,
        })
    }

    /// Returns the objects that apply to all pods of the namespace, without the namespace.
    fn split_around_namespace(self) -> Vec<Self> {
        let of = |kind: &'static str| move |document: &Document| document.object["kind"] == kind;
        let (policies, others): (Vec<_>, Vec<_>) = self.documents.into_iter().partition(of("NetworkPolicy"));
        vec![
            Self {
                name: "priority-class.yaml",
                documents: others.into_iter().filter(of("PriorityClass")).collect(),
                condition: None,
            },
            Self {
                name: "network-policy.yaml",
                documents: policies,
                condition: Some("networkPolicy.enabled"),
            },
        ]
    }
}
