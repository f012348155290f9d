//! The arguments of `windlass manifests`, and the generated files.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Parser;
use serde_json::{Value, json};
use windlass_api::custom_resource_definitions;

use super::document::Document;
use super::{
    chart::{self, ChartFile},
    deployment, extension_config_policies, guard, interpretations, monitoring, namespace,
    operator_conditions, policies, rbac, ui, user_facing_roles,
};

/// Prints the manifests that install Windlass, for `kubectl apply --server-side -f -`.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// Write one file per topic to DIR, overwriting existing files.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Write the Helm chart to DIR, overwriting existing files.
    #[arg(long, value_name = "DIR")]
    chart_dir: Option<PathBuf>,
}

/// A file of manifests.
pub(super) struct ManifestFile {
    pub(super) name: &'static str,
    pub(super) documents: Vec<Document>,
}

impl Args {
    /// Prints or writes the manifests.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let Self {
            output_dir,
            chart_dir,
        } = self;
        if let Some(directory) = output_dir {
            for file in files()?.into_iter().chain(optional_files()?) {
                write(&directory.join(file.name), &file.text()?)?;
            }
        }
        if let Some(directory) = chart_dir {
            for file in chart_files()? {
                write(&directory.join(file.path), &file.text)?;
            }
        }
        if output_dir.is_none() && chart_dir.is_none() {
            let files = files()?.into_iter().filter(|file| file.name != KUSTOMIZATION);
            let text: Vec<_> = files.map(|file| file.text()).collect::<anyhow::Result<_>>()?;
            std::io::stdout()
                .write_all(text.join("---\n").as_bytes())
                .context("cannot write to standard output")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a file, and creates its parent folders.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

impl ManifestFile {
    fn text(&self) -> anyhow::Result<String> {
        let documents = self.documents.iter().map(Document::text);
        Ok(documents.collect::<anyhow::Result<Vec<_>>>()?.join("---\n"))
    }
}

/// Returns every object that installs Windlass, in the order in which to apply them.
///
/// # Errors
///
/// When a type cannot be written as JSON.
pub fn objects() -> anyhow::Result<Vec<Value>> {
    let installing = files()?.into_iter().filter(|file| file.name != KUSTOMIZATION);
    Ok(installing
        .flat_map(|file| file.documents)
        .map(|document| document.object)
        .collect())
}

/// Returns the objects of a file in `manifests`; empty if there is no such file.
///
/// # Errors
///
/// As [`objects`].
pub fn objects_of(name: &str) -> anyhow::Result<Vec<Value>> {
    let named = files()?.into_iter().filter(|file| file.name == name);
    Ok(named
        .flat_map(|file| file.documents)
        .map(|document| document.object)
        .collect())
}

/// Returns the objects that run the certificate controllers, without the namespace and the
/// CustomResourceDefinitions.
pub fn certificates_objects() -> Vec<Value> {
    let documents = certificates_documents().into_iter();
    documents.map(|document| document.object).collect()
}

/// Returns the OperatorCondition CRD, for clusters without OLM.
pub fn operator_condition_crd() -> Value {
    operator_conditions::definition()
}

/// Returns the CustomResourceDefinitions of resource interpretation: Windlass's own and those of Karmada.
pub fn customization_crds() -> Vec<Value> {
    interpretations::definitions()
}

/// Returns the admission policies for clusters without Cluster API, and the rights to turn them off.
pub fn extension_config_policy_objects() -> Vec<Value> {
    let documents = extension_config_policies::documents().into_iter();
    documents.map(|document| document.object).collect()
}

/// Returns the objects of the policy server.
pub fn policies_objects() -> Vec<Value> {
    let documents = policies::documents().into_iter();
    documents.map(|document| document.object).collect()
}

/// Returns the objects of the Helm hook that disarms policies.
pub fn policy_disarm_hook_objects() -> Vec<Value> {
    let documents = chart::policy_disarm_hook().into_iter();
    documents.map(|document| document.object).collect()
}

/// Returns the objects that serve the page of `windlass report`.
pub fn ui_objects() -> Vec<Value> {
    let documents = ui::documents().into_iter();
    documents.map(|document| document.object).collect()
}

const KUSTOMIZATION: &str = "kustomization.yaml";

fn certificates_documents() -> Vec<Document> {
    let mut documents = rbac::certificates_documents();
    documents.extend(deployment::certificates_documents());
    documents
}

/// Returns the files that are applied separately: kinds that OLM, Cluster API or Karmada may have installed,
/// and optional features.
fn optional_files() -> anyhow::Result<[ManifestFile; 9]> {
    Ok([
        ManifestFile {
            name: "policies.yaml",
            documents: policies::documents(),
        },
        ManifestFile {
            name: "ui.yaml",
            documents: ui::documents(),
        },
        ManifestFile {
            name: "resource-interpretations.yaml",
            documents: interpretations::documents(),
        },
        ManifestFile {
            name: "resource-interpreter-customizations.yaml",
            documents: interpretations::karmada_documents(),
        },
        ManifestFile {
            name: "resource-interpreter-webhook-configurations.yaml",
            documents: interpretations::webhook_configuration_documents(),
        },
        ManifestFile {
            name: "operator-conditions.yaml",
            documents: operator_conditions::documents(),
        },
        ManifestFile {
            name: "extension-configs.yaml",
            documents: extension_config_policies::documents(),
        },
        ManifestFile {
            name: "monitoring.yaml",
            documents: monitoring::documents(),
        },
        ManifestFile {
            name: "dashboard.yaml",
            documents: monitoring::dashboard_documents()?,
        },
    ])
}

/// Returns every file that installs Windlass, in the order in which to apply them.
fn files() -> anyhow::Result<Vec<ManifestFile>> {
    let crds = custom_resource_definitions()
        .iter()
        .map(|crd| Ok(Document::new(serde_json::to_value(crd)?)))
        .collect::<anyhow::Result<_>>()?;
    let mut files = vec![
        ManifestFile {
            name: "namespace.yaml",
            documents: namespace::documents(),
        },
        ManifestFile {
            name: "custom-resource-definitions.yaml",
            documents: crds,
        },
        ManifestFile {
            name: "certificates.yaml",
            documents: certificates_documents(),
        },
        ManifestFile {
            name: "rbac.yaml",
            documents: rbac::documents(),
        },
        ManifestFile {
            name: "deployment.yaml",
            documents: deployment::documents(),
        },
        ManifestFile {
            name: "guard.yaml",
            documents: guard::documents(),
        },
        ManifestFile {
            name: "user-facing-roles.yaml",
            documents: user_facing_roles::documents(),
        },
    ];
    let resources: Vec<_> = files.iter().map(|file| file.name).collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources
    });
    files.push(ManifestFile {
        name: KUSTOMIZATION,
        documents: vec![Document::new(kustomization)],
    });
    Ok(files)
}

/// Returns every file of the chart.
fn chart_files() -> anyhow::Result<Vec<ChartFile>> {
    chart::files(files()?.into_iter().chain(optional_files()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_chart_is_what_is_generated() {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("charts/windlass");
        let mut checked_in: Vec<_> = ["", "templates"]
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(directory.join(folder)).into_iter().flatten())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect();
        let files = chart_files().unwrap();
        for file in &files {
            let path = directory.join(&file.path);
            assert!(
                std::fs::read_to_string(&path).unwrap_or_default() == file.text,
                "{} is out of date: run `cargo run --bin windlass -- manifests --chart-dir charts/windlass`",
                file.path
            );
            checked_in.retain(|other| *other != path);
        }
        assert_eq!(checked_in, Vec::<PathBuf>::new(), "files that are not generated");
    }

    #[test]
    fn the_checked_in_manifests_are_what_is_generated() {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("manifests");
        for file in files().unwrap().into_iter().chain(optional_files().unwrap()) {
            let checked_in = std::fs::read_to_string(directory.join(file.name)).unwrap_or_default();
            assert_eq!(
                checked_in,
                file.text().unwrap(),
                "{} is out of date: run `cargo run --bin windlass -- manifests --output-dir manifests`",
                file.name
            );
        }
    }

    #[test]
    fn api_types_have_their_validation_rules() {
        let text = files().unwrap()[1].text().unwrap();
        for rule in [
            "specify exactly one source",
            "namespace is immutable",
            "secretName is immutable",
            "caDuration must be at least twice",
            "ca.duration must be at least twice",
            "2048, 3072 or 4096 with RSA",
        ] {
            assert!(text.contains(rule), "{rule}");
        }
    }
}
