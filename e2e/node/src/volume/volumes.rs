//! The volumes of a pod, and where each container finds them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};
use parking_lot::Mutex;

use super::{
    content::{self, VolumeContents},
    writer,
};

/// A volume cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the volume {volume:?}: {source}")]
pub(crate) struct WriteError {
    volume: String,
    source: io::Error,
}

/// The volumes of one pod, in its folder.
pub(crate) struct Volumes {
    folder: PathBuf,
    /// What each volume of files holds now.
    written: Mutex<VolumeContents>,
}

impl Volumes {
    /// Volumes below a folder that belongs to the pod.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            written: Mutex::new(BTreeMap::new()),
        }
    }

    /// Makes the folders of the volumes that hold no files of the API.
    pub(crate) fn prepare(&self, spec: &PodSpec) -> Result<(), WriteError> {
        for volume in spec.volumes.iter().flatten() {
            if host_path(volume).is_none() {
                fs::create_dir_all(self.path(&volume.name)).map_err(|source| WriteError {
                    volume: volume.name.clone(),
                    source,
                })?;
            }
        }
        Ok(())
    }

    /// Whether a volume holds something else than this.
    pub(crate) fn differs(&self, contents: &VolumeContents) -> bool {
        *self.written.lock() != *contents
    }

    /// Writes every volume that holds something else: each changes as a whole.
    pub(crate) fn write(&self, contents: VolumeContents) -> Result<(), WriteError> {
        let mut written = self.written.lock();
        for (volume, content) in contents {
            if written.get(&volume) != Some(&content) {
                writer::write(&self.path(&volume), &content).map_err(|source| WriteError {
                    volume: volume.clone(),
                    source,
                })?;
                written.insert(volume, content);
            }
        }
        Ok(())
    }

    /// Where a container finds its mounts: mount path to local path.
    ///
    /// A mount of a part of a volume (`subPath`) of files is a copy as of now, which no update reaches.
    pub(crate) fn mounts(
        &self,
        spec: &PodSpec,
        container: &Container,
        expand: impl Fn(&str) -> String,
    ) -> Result<BTreeMap<String, PathBuf>, WriteError> {
        let mut mounts = BTreeMap::new();
        for (number, mount) in container.volume_mounts.iter().flatten().enumerate() {
            let Some(volume) = spec
                .volumes
                .iter()
                .flatten()
                .find(|volume| volume.name == mount.name)
            else {
                continue;
            };
            let whole = host_path(volume).unwrap_or_else(|| self.path(&volume.name));
            let part = mount
                .sub_path
                .clone()
                .or_else(|| mount.sub_path_expr.as_deref().map(&expand));
            let path = match part.filter(|part| !part.is_empty()) {
                None => Ok(whole),
                Some(part) => self.part(&volume.name, &whole, &part, &container.name, number),
            }
            .map_err(|source| WriteError {
                volume: volume.name.clone(),
                source,
            })?;
            let target = mount.mount_path.trim_end_matches('/');
            mounts.insert(if target.is_empty() { "/" } else { target }.to_owned(), path);
        }
        Ok(mounts)
    }

    /// Removes everything.
    pub(crate) fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.folder.display(), "Cannot remove the folder of a pod");
        }
    }

    fn path(&self, volume: &str) -> PathBuf {
        self.folder.join("volumes").join(volume)
    }

    fn part(
        &self,
        volume: &str,
        whole: &Path,
        part: &str,
        container: &str,
        number: usize,
    ) -> io::Result<PathBuf> {
        let part =
            content::relative(part).ok_or_else(|| io::Error::other(format!("bad subPath {part:?}")))?;
        let path = whole.join(part);
        if !self.written.lock().contains_key(volume) {
            if !path.exists() {
                fs::create_dir_all(&path)?;
            }
            return Ok(path);
        }
        let target = self.folder.join("parts").join(container).join(number.to_string());
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        copy(&path, &target)?;
        Ok(target)
    }
}

fn host_path(volume: &Volume) -> Option<PathBuf> {
    volume.host_path.as_ref().map(|host| PathBuf::from(&host.path))
}

/// Copies a file, or the files of a folder, following links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::{super::content::File, *};

    fn file(text: &str) -> File {
        File {
            bytes: text.as_bytes().to_vec(),
            mode: 0o644,
        }
    }

    #[test]
    fn a_mounted_folder_is_refreshed_and_a_mounted_part_is_not() {
        let folder = TempDir::new().unwrap();
        let spec: PodSpec = serde_json::from_value(json!({
            "volumes": [{"name": "cert", "secret": {"secretName": "s"}}, {"name": "scratch", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [
                {"name": "cert", "mountPath": "/certs/"},
                {"name": "cert", "mountPath": "/one.crt", "subPath": "tls.crt"},
                {"name": "scratch", "mountPath": "/scratch", "subPathExpr": "$(X)"},
            ]}],
        }))
        .unwrap();
        let volumes = Volumes::new(folder.path().to_owned());
        volumes.prepare(&spec).unwrap();
        let content = |text: &str| {
            BTreeMap::from([(
                "cert".to_owned(),
                BTreeMap::from([("tls.crt".into(), file(text))]),
            )])
        };
        volumes.write(content("old")).unwrap();
        assert!(!volumes.differs(&content("old")) && volumes.differs(&content("new")));
        let mounts = volumes
            .mounts(&spec, &spec.containers[0], |_| "expanded".to_owned())
            .unwrap();
        volumes.write(content("new")).unwrap();
        assert_eq!(
            fs::read_to_string(mounts["/certs"].join("tls.crt")).unwrap(),
            "new"
        );
        assert_eq!(fs::read_to_string(&mounts["/one.crt"]).unwrap(), "old");
        assert!(mounts["/scratch"].ends_with("scratch/expanded") && mounts["/scratch"].is_dir());
    }
}
