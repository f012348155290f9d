//! From a source to a plan.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_api::{BundleDeployment, BundleDeploymentSpec, BundleStatus, ConfigMapName};
use windlass_bundle::{Files, check, render, requirements::Requirements, sources, upgrade::Predecessors};
use windlass_cluster::kinds;
use windlass_object::{
    object,
    text::{Listing, hexadecimal},
};

use super::{
    halt::Halt,
    memory::{LoadOutcome, Loaded},
    reconciler::BundleReconciler,
};
use crate::install::{
    plan::{Plan, conversion_mode, install_options},
    status::{InstallOutcome, Milestone},
};

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
        if let Some(outcome) = self.find_unread(&name, spec) {
            return outcome.map_err(|(reason, message)| refused(reason, message));
        }
        let (files, objects) = match (&source.directory, &source.config_maps, &source.image) {
            (Some(directory), None, None) => (self.read_directory(&directory.path).await?, None),
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
        if source.directory.is_some() && !self.has_settled(deployment, &name, &digest) {
            return self.loader.latest(&name, spec).ok_or_else(|| self.changing());
        }
        if let Some(objects) = objects {
            self.loader.stamp(&name, objects, &digest);
        }
        let outcome = match self.loader.find(&name, &digest, spec) {
            Some(outcome) => outcome,
            None => self.plan(name, digest, files, spec).await?,
        };
        outcome.map_err(|(reason, message)| refused(reason, message))
    }

    /// Plans what was read, and remembers what came of it.
    async fn plan(
        &self,
        name: String,
        digest: String,
        files: Files,
        spec: &BundleDeploymentSpec,
    ) -> Result<LoadOutcome, Halt> {
        let (asked, of, owner) = (spec.clone(), digest.clone(), name.clone());
        let planned = tokio::task::spawn_blocking(move || plan(&owner, &files, of, &asked));
        let outcome = planned.await?.map(Arc::new);
        self.loader.keep(name, digest, spec.clone(), outcome.clone());
        Ok(outcome)
    }

    /// What came of it last, where the ConfigMaps are, as their watches show them, what was read then.
    fn find_unread(&self, name: &str, spec: &BundleDeploymentSpec) -> Option<LoadOutcome> {
        let names = spec.source.config_maps.as_ref()?;
        let seen = names.iter().map(|ConfigMapName { name }| {
            let key = kinds::CONFIG_MAP.object(Some(&self.context.namespace), name);
            self.context.index.find(&key)
        });
        let seen: Vec<_> = seen.collect::<Option<_>>()?;
        let objects = stamp(seen.iter().map(AsRef::as_ref));
        self.loader.find_unread(name, &objects, spec)
    }

    /// Whether what a folder holds is believed: it is what was installed or loaded before, the spec asks for it anew, or
    /// it has stayed the same for a while. What is missing in a folder that is being copied would be removed.
    fn has_settled(&self, deployment: &BundleDeployment, name: &str, digest: &str) -> bool {
        let status = deployment.status.clone().unwrap_or_default();
        let is_asked_anew = status.observed_generation != deployment.metadata.generation;
        let reported = [&status.bundle, &status.installing];
        let is_reported = reported.into_iter().flatten().any(|known| known.digest == digest);
        let pause = self.timing.recheck / 2;
        let has_settled = self.loader.has_settled(name, digest, Instant::now(), pause);
        status.bundle.is_none() || is_asked_anew || is_reported || has_settled
    }

    fn changing(&self) -> Halt {
        let message = "the directory has changed; waiting until two reads of it agree";
        let outcome = InstallOutcome::waiting(Milestone::Accepted, "SourceChanging", message);
        Halt::Later(outcome, self.timing.recheck)
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

    /// What the ConfigMaps hold, and which they are.
    async fn read_config_maps(&self, names: &[ConfigMapName]) -> Result<(Files, Option<String>), Halt> {
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
        let objects = stamp(&config_maps);
        let archive = sources::config_maps::assemble(&config_maps)
            .map_err(|error| refused("SourceInvalid", error.to_string()))?;
        let read =
            tokio::task::spawn_blocking(move || sources::archive::load(archive.as_slice(), "the ConfigMaps"));
        let files = read
            .await?
            .map_err(|error| refused("SourceInvalid", format!("{}: {error}", error.file())))?;
        Ok((files, Some(objects)))
    }
}

/// Tells these objects, as they are, from any others: a resourceVersion is of one state of one object.
fn stamp<'a>(objects: impl IntoIterator<Item = &'a Value>) -> String {
    let stamps = objects.into_iter().map(|object| {
        let text = |pointer| object::text(object, pointer).unwrap_or_default();
        format!("{}/{}", text("/metadata/uid"), text("/metadata/resourceVersion"))
    });
    stamps.collect::<Vec<_>>().join(" ")
}

/// A path below `root`, wherever links in it lead.
pub(super) fn inside(root: &Path, path: &str) -> Result<PathBuf, String> {
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

/// The bundle in `files`, which have this digest, and its plan for the BundleDeployment `name`; else a reason and a message.
fn plan(
    name: &str,
    files: &Files,
    digest: String,
    spec: &BundleDeploymentSpec,
) -> Result<Loaded, (&'static str, String)> {
    let bundle = check::parse_for(files, conversion_mode(spec))
        .map_err(|problems| ("BundleInvalid", PROBLEMS.of(&problems)))?;
    let options = install_options(spec).map_err(|problems| ("ConfigInvalid", PROBLEMS.of(&problems)))?;
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
        plan: Plan::new(rendered, csv, name, options.config.serving),
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
