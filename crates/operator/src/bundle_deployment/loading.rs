//! From a source to a plan.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};
use windlass_api::{BundleDeployment, BundleDeploymentSpec, BundleStatus, ConfigMapName, ConversionManager};
use windlass_bundle::{
    Files, check,
    render::{self, CertificateProvider, ConversionMode, DeploymentConfig, Durations, InstallOptions},
    requirements::Requirements,
    sources,
    upgrade::Predecessors,
};
use windlass_cluster::kinds;
use windlass_object::text::{Listing, hexadecimal};

use super::{halt::Halt, memory::Loaded, reconciler::BundleReconciler};
use crate::install::{plan::Plan, status::Milestone};

/// How a status lists problems.
const PROBLEMS: Listing = Listing {
    most: 10,
    separator: "; ",
    way_to_rest: ": to see all, run windlass check",
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Reads the source, checks what it holds, and plans its install.
    pub(super) async fn load(&self, deployment: &BundleDeployment) -> Result<Arc<Loaded>, Halt> {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let spec = &deployment.spec;
        let source = &spec.source;
        let files = match (&source.directory, &source.config_maps, &source.image) {
            (Some(directory), None, None) => self.read_directory(&directory.path).await?,
            (None, Some(config_maps), None) => self.read_config_maps(config_maps).await?,
            (None, None, Some(image)) => {
                let message = format!(
                    "pulling {} is not supported in this release: use --bundle-dir or ConfigMaps instead",
                    image.reference
                );
                return Err(refused("SourceUnsupported", message));
            }
            _ => return Err(refused("SourceInvalid", "specify exactly one source")),
        };
        let digest = digest(&files);
        if let Some(loaded) = self.loader.find(&name, &digest, spec) {
            return Ok(loaded);
        }
        let asked = spec.clone();
        let planned = tokio::task::spawn_blocking(move || plan(&files, digest, &asked));
        let loaded = planned
            .await?
            .map_err(|(reason, message)| refused(reason, message))?;
        let loaded = Arc::new(loaded);
        self.loader.keep(name, spec.clone(), loaded.clone());
        Ok(loaded)
    }

    async fn read_directory(&self, path: &str) -> Result<Files, Halt> {
        let Some(root) = self.context.bundle_directory.clone() else {
            let message = "spec.source.directory requires that the operator runs with --bundle-dir";
            return Err(refused("SourceInvalid", message));
        };
        let path = path.to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let folder = inside(&root, &path)?;
            sources::load(&folder).map_err(|error| format!("{}: {error}", error.file()))
        });
        read.await?.map_err(|problem| refused("SourceInvalid", problem))
    }

    async fn read_config_maps(&self, names: &[ConfigMapName]) -> Result<Files, Halt> {
        let mut config_maps = Vec::new();
        for ConfigMapName { name } in names {
            let key = kinds::CONFIG_MAP.object(Some(&self.context.namespace), name);
            let Some(config_map) = self.context.cluster.read(&key).await? else {
                // Whoever makes the BundleDeployment may make its ConfigMaps next.
                let message = format!("{key} not found");
                return Err(Halt::waiting(Milestone::Accepted, "SourceMissing", message));
            };
            config_maps.push(config_map);
        }
        let archive = sources::config_maps::assemble(&config_maps)
            .map_err(|error| refused("SourceInvalid", error.to_string()))?;
        let read =
            tokio::task::spawn_blocking(move || sources::archive::load(archive.as_slice(), "the ConfigMaps"));
        read.await?
            .map_err(|error| refused("SourceInvalid", format!("{}: {error}", error.file())))
    }
}

/// A path below `root`, wherever links in it lead.
fn inside(root: &Path, path: &str) -> Result<PathBuf, String> {
    let folder = root.join(path);
    let folder = folder
        .canonicalize()
        .map_err(|error| format!("{path}: cannot be read: {error}"))?;
    if folder.starts_with(root) {
        Ok(folder)
    } else {
        Err(format!("{path}: is outside of --bundle-dir"))
    }
}

/// `sha256:…` over the names and contents of all files.
fn digest(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (name, content) in files {
        // Lengths first, so that no two sets of files read alike.
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update((content.len() as u64).to_be_bytes());
        hash.update(content);
    }
    format!("sha256:{}", hexadecimal(&hash.finalize()))
}

/// The bundle in `files`, which have this digest, and its plan; else a reason and a message.
fn plan(
    files: &Files,
    digest: String,
    spec: &BundleDeploymentSpec,
) -> Result<Loaded, (&'static str, String)> {
    let conversion = match spec.conversion {
        ConversionManager::Managed => ConversionMode::Managed,
        ConversionManager::External => ConversionMode::External,
    };
    let tolerance = check::Tolerance {
        undeclared_conversions: conversion == ConversionMode::External,
        blocking_webhooks: spec.allow_blocking_webhooks,
    };
    let bundle =
        check::parse_for(files, tolerance).map_err(|problems| ("BundleInvalid", PROBLEMS.of(&problems)))?;
    let config = match &spec.config {
        Some(config) => DeploymentConfig::from_value("spec.config", config),
        None => Ok(DeploymentConfig::default()),
    };
    let options = InstallOptions {
        namespace: spec.namespace.clone(),
        watch_namespaces: spec.watch_namespaces.clone(),
        config: config.map_err(|problems| ("ConfigInvalid", PROBLEMS.of(&problems)))?,
        certificates: CertificateProvider::Windlass {
            durations: Some(Durations {
                certificate: spec.certificates.duration,
                ca: spec.certificates.ca_duration,
            }),
        },
        conversion,
        blocking_webhooks: spec.allow_blocking_webhooks,
    };
    let rendered =
        render::render(&bundle, &options).map_err(|errors| ("InstallUnsupported", PROBLEMS.of(&errors)))?;
    let csv = bundle.csv();
    let status = BundleStatus {
        package: bundle.package.clone(),
        name: csv.name().to_owned(),
        version: csv.version().to_owned(),
        digest,
    };
    Ok(Loaded {
        bundle: status,
        plan: Plan::new(rendered, csv, options.config.serving.canary),
        predecessors: Predecessors::of(csv),
        requirements: Requirements::read(&bundle).0,
    })
}

fn refused(reason: &str, message: impl Into<String>) -> Halt {
    Halt::failed(Milestone::Accepted, reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_its_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        assert_eq!(inside(&root, "a"), Ok(root.join("a")));
        for path in ["..", "/", "out", "a/../.."] {
            assert!(
                inside(&root, path).unwrap_err().contains("is outside of"),
                "{path}"
            );
        }
        assert!(inside(&root, "missing").unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn digests_tell_files_apart_that_read_alike() {
        let files = |entries: &[(&str, &str)]| -> Files {
            entries
                .iter()
                .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
                .collect()
        };
        let digest = |entries: &[(&str, &str)]| super::digest(&files(entries));
        assert_ne!(digest(&[("ab", "c")]), digest(&[("a", "bc")]));
        assert_eq!(digest(&[("a", "b")]), digest(&[("a", "b")]));
    }
}
