//! From a source to a plan.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::task::JoinError;
use windlass_api::{BundleDeployment, BundleStatus, ConfigMapName, Source};
use windlass_bundle::{
    Files, check, render,
    requirements::Requirements,
    sources::{self, StoredBundle},
    upgrade::Predecessors,
};
use windlass_cluster::kinds;
use windlass_object::{
    object,
    text::{Listing, hexadecimal},
};

use super::{
    halt::Halt,
    memory::{LoadOutcome, Loaded},
    reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::install::{
    overrides,
    plan::Plan,
    revision::InstallSettings,
    status::{InstallOutcome, Milestone},
};

/// How a status lists problems.
pub(super) const PROBLEMS: Listing = Listing {
    most: 10,
    separator: "; ",
    way_to_rest: ": to see all, run windlass check",
};

impl BundleReconciler {
    /// Reads the source, checks what it holds, and plans its install.
    pub(super) async fn load(
        &self,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        let source = &deployment.spec.source;
        if source.catalog.is_none() {
            report.leave_catalog();
        }
        let settings = InstallSettings::of(&deployment.spec);
        let outcome = match self.find_unread(name, source, &settings) {
            Some(outcome) => outcome,
            None => self.load_anew(deployment, name, &settings, report).await?,
        };
        let loaded = outcome.map_err(|(reason, message)| refused(reason, message))?;
        let digest = &loaded.bundle.digest;
        if let Some(pinned) = source.digest.as_ref().filter(|pinned| *pinned != digest) {
            let message = format!(
                "the source has {digest} but spec.source.digest pins {pinned}: change the source back, or pin the new digest"
            );
            return Err(refused("DigestMismatch", message));
        }
        Ok(loaded)
    }

    async fn load_anew(
        &self,
        deployment: &BundleDeployment,
        name: &str,
        settings: &InstallSettings,
        report: &mut InstallReport,
    ) -> Result<LoadOutcome, Halt> {
        let source = &deployment.spec.source;
        let (image, catalog) = (&source.image, &source.catalog);
        match (&source.directory, &source.config_maps, image, catalog) {
            (None, None, Some(image), None) => return self.load_image(deployment, image, settings).await,
            (None, None, None, Some(catalog)) => {
                return self.load_next(deployment, catalog, settings, report).await;
            }
            _ => {}
        }
        let (files, objects) = self.read(source).await?;
        let digest = bundle_digest(&files);
        if source.directory.is_some() && !self.has_settled(deployment, name, &digest) {
            let latest = self.loader.latest(name, settings);
            return latest.map(Ok).ok_or_else(|| self.changing());
        }
        if let Some(objects) = objects {
            self.loader.stamp(name, objects, &digest);
        }
        self.loader.note_source(name, settings.clone(), &digest);
        Ok(self.planned(name, files, digest, settings.clone()).await?)
    }

    /// The plan of a bundle with these files, which have this digest; else a reason and a message.
    pub(super) async fn planned(
        &self,
        name: &str,
        files: Files,
        digest: String,
        settings: InstallSettings,
    ) -> Result<LoadOutcome, JoinError> {
        if let Some(outcome) = self.loader.find(name, &digest, &settings) {
            return Ok(outcome);
        }
        let (owner, of, asked) = (name.to_owned(), digest.clone(), settings.clone());
        let planned = tokio::task::spawn_blocking(move || plan(&owner, &files, of, asked));
        let outcome = planned.await?.map(Arc::new);
        self.loader.keep(name, digest, settings, outcome.clone());
        Ok(outcome)
    }

    /// What a source holds, and from which ConfigMaps it was read.
    async fn read(&self, source: &Source) -> Result<(Files, Option<String>), Halt> {
        let (image, catalog) = (&source.image, &source.catalog);
        match (&source.directory, &source.config_maps, image, catalog) {
            (Some(directory), None, None, None) => Ok((self.read_directory(&directory.path).await?, None)),
            (None, Some(config_maps), None, None) => {
                let names: Vec<_> = config_maps
                    .iter()
                    .map(|ConfigMapName { name }| name.clone())
                    .collect();
                let (files, objects) = self.read_config_maps(&names).await?;
                Ok((files, Some(objects)))
            }
            _ => Err(refused("SourceInvalid", "specify exactly one source")),
        }
    }

    /// What came of it last, where the ConfigMaps are, as their watches show them, what was read then.
    fn find_unread(&self, name: &str, source: &Source, settings: &InstallSettings) -> Option<LoadOutcome> {
        let names = source.config_maps.as_ref()?;
        let seen = names.iter().map(|ConfigMapName { name }| {
            let key = kinds::CONFIG_MAP.object(Some(&self.context.namespace), name);
            self.context.index.find(&key)
        });
        let seen: Vec<_> = seen.collect::<Option<_>>()?;
        let objects = stamp(seen.iter().map(AsRef::as_ref));
        self.loader.find_unread(name, &objects, settings)
    }

    /// Whether what a folder holds is believed: it is what was installed or loaded before, the spec asks for it anew, or
    /// it has stayed the same for a while. What is missing in a folder that is being copied would be removed.
    fn has_settled(&self, deployment: &BundleDeployment, name: &str, digest: &str) -> bool {
        let status = deployment.status.clone().unwrap_or_default();
        let is_asked_anew = status.observed_generation != deployment.metadata.generation;
        let installed = status
            .installed
            .as_ref()
            .map(|installed| &installed.bundle.digest);
        let next = status.next.as_ref().and_then(|next| next.digest.as_ref());
        let is_reported = installed.into_iter().chain(next).any(|known| known == digest);
        let pause = self.timing.recheck / 2;
        let has_settled = self.loader.has_settled(name, digest, Instant::now(), pause);
        installed.is_none() || is_asked_anew || is_reported || has_settled
    }

    fn changing(&self) -> Halt {
        let message = "the directory has changed; waiting until two consecutive reads return the same files";
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

    /// The files of a bundle whose archive is in ConfigMaps in the operator's namespace, and which these are.
    pub(super) async fn read_config_maps(&self, names: &[String]) -> Result<(Files, String), Halt> {
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
        let objects = stamp(&config_maps);
        let archive = sources::config_maps::assemble(&config_maps)
            .map_err(|error| refused("SourceInvalid", error.to_string()))?;
        let read =
            tokio::task::spawn_blocking(move || sources::archive::load(archive.as_slice(), "the ConfigMaps"));
        let files = read
            .await?
            .map_err(|error| refused("SourceInvalid", format!("{}: {error}", error.file())))?;
        Ok((files, objects))
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

/// `sha256:…` over the names and contents of all files of a bundle: what `spec.source.digest` pins.
pub fn bundle_digest(files: &Files) -> String {
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
    settings: InstallSettings,
) -> Result<Loaded, (&'static str, String)> {
    let bundle = check::parse_for(files, settings.tolerance())
        .map_err(|problems| ("BundleInvalid", PROBLEMS.summarize(&problems)))?;
    let options = settings
        .options()
        .map_err(|problems| ("ConfigInvalid", PROBLEMS.summarize(&problems)))?;
    let mut rendered = render::render(&bundle, &options)
        .map_err(|errors| ("InstallUnsupported", PROBLEMS.summarize(&errors)))?;
    overrides::apply(&mut rendered.objects, &settings.overrides)
        .map_err(|error| ("OverrideOutdated", error.to_string()))?;
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
        predecessors: Predecessors::from_csv(csv),
        requirements: Requirements::read(&bundle).0,
        stored: StoredBundle::from_files(files).map_err(|error| ("SourceInvalid", error.to_string()))?,
        settings,
    })
}

pub(super) fn refused(reason: &str, message: impl Into<String>) -> Halt {
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
        let digest = |entries: &[(&str, &str)]| super::bundle_digest(&files(entries));
        assert_ne!(digest(&[("ab", "c")]), digest(&[("a", "bc")]));
        assert_eq!(digest(&[("a", "b")]), digest(&[("a", "b")]));
    }
}
