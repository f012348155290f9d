//! From a source to a plan.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};
use tokio::task::JoinError;
use windlass_api::{BundleDeployment, BundleStatus, ConfigMapName, Source};
use windlass_bundle::{
    Files, check,
    render::{self, CertificateProvider, DeploymentConfig, Durations, InstallOptions},
    sources::{self, StoredBundle},
    upgrade::Predecessors,
};
use windlass_cluster::kinds;
use windlass_object::text::{Listing, hexadecimal};

use super::{halt::Halt, memory::Loaded, reconciler::BundleReconciler};
use crate::install::{plan::Plan, revision::InstallSettings, status::Milestone};

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
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        let source = &deployment.spec.source;
        let files = self.read(source).await?;
        let digest = digest(&files);
        if let Some(pinned) = source.digest.as_ref().filter(|pinned| **pinned != digest) {
            let message = format!(
                "the source has {digest} but spec.source.digest pins {pinned}: change the source back, or pin what it has"
            );
            return Err(refused("DigestMismatch", message));
        }
        let settings = InstallSettings::of(&deployment.spec);
        let planned = self.planned(name, files, digest, settings).await?;
        planned.map_err(|(reason, message)| refused(reason, message))
    }

    /// The plan of a bundle with these files, which have this digest; else a reason and a message.
    pub(super) async fn planned(
        &self,
        name: &str,
        files: Files,
        digest: String,
        settings: InstallSettings,
    ) -> Result<Result<Arc<Loaded>, (&'static str, String)>, JoinError> {
        if let Some(loaded) = self.loader.find(name, &digest, &settings) {
            return Ok(Ok(loaded));
        }
        let planned = tokio::task::spawn_blocking(move || plan(&files, digest, settings)).await?;
        Ok(planned.map(|loaded| {
            let loaded = Arc::new(loaded);
            self.loader.keep(name, loaded.clone());
            loaded
        }))
    }

    async fn read(&self, source: &Source) -> Result<Files, Halt> {
        match (&source.directory, &source.config_maps, &source.image) {
            (Some(directory), None, None) => self.read_directory(&directory.path).await,
            (None, Some(config_maps), None) => {
                let names: Vec<_> = config_maps
                    .iter()
                    .map(|ConfigMapName { name }| name.clone())
                    .collect();
                self.read_config_maps(&names).await
            }
            (None, None, Some(image)) => {
                let message = format!(
                    "pulling {} is not supported in this release: use --bundle-dir or ConfigMaps instead",
                    image.reference
                );
                Err(refused("SourceUnsupported", message))
            }
            _ => Err(refused("SourceInvalid", "specify exactly one source")),
        }
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

    /// The files of a bundle whose archive is in ConfigMaps in the operator's namespace.
    pub(super) async fn read_config_maps(&self, names: &[String]) -> Result<Files, Halt> {
        let mut config_maps = Vec::new();
        for name in names {
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
pub(super) fn digest(files: &Files) -> String {
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
fn plan(files: &Files, digest: String, settings: InstallSettings) -> Result<Loaded, (&'static str, String)> {
    let bundle = check::parse(files).map_err(|problems| ("BundleInvalid", PROBLEMS.of(&problems)))?;
    let config = match &settings.config {
        Some(config) => DeploymentConfig::from_value("spec.config", config),
        None => Ok(DeploymentConfig::default()),
    };
    let options = InstallOptions {
        namespace: settings.namespace.clone(),
        watch_namespaces: settings.watch_namespaces.clone(),
        config: config.map_err(|problems| ("ConfigInvalid", PROBLEMS.of(&problems)))?,
        certificates: CertificateProvider::Windlass {
            durations: Some(Durations {
                certificate: settings.certificates.duration,
                ca: settings.certificates.ca_duration,
            }),
        },
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
        stored: StoredBundle::of(files).map_err(|error| ("SourceInvalid", error.to_string()))?,
        settings,
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
