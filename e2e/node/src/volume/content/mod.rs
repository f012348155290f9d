//! What is in the volumes of a pod, by its spec and the objects that it names.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, PodSpec, ServiceAccountTokenProjection, Volume, VolumeProjection,
};

use crate::{
    fields::PodFields,
    objects::{Entries, Sources},
};

/// The mode of a file that has none of its own: kubelet's default.
const MODE: i32 = 0o644;

/// The files of a volume by their paths in it.
pub(crate) type Content = BTreeMap<PathBuf, File>;

/// The files of volumes, by the names of the volumes.
pub(crate) type VolumeContents = BTreeMap<String, Content>;

/// A file of a volume.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// Why a pod's volumes or variables cannot be made yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    /// There is no such Secret.
    #[error("secret \"{0}\" not found")]
    Secret(String),
    /// There is no such ConfigMap.
    #[error("configmap \"{0}\" not found")]
    ConfigMap(String),
    /// A Secret or ConfigMap lacks a key.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    Key {
        kind: &'static str,
        namespace: String,
        name: String,
        key: String,
    },
    /// The path of a file leads out of its volume.
    #[error("path {0:?} must be relative and must not contain '..'")]
    Path(String),
    /// The downward API has no such field.
    #[error("unsupported fieldPath: {0}")]
    Field(String),
    /// A token was not issued yet.
    #[error("no token for the ServiceAccount yet")]
    Token,
}

/// What the content of volumes is made from.
pub(crate) struct Ingredients<'a, S> {
    pub(crate) fields: PodFields<'a>,
    pub(crate) namespace: &'a str,
    pub(crate) sources: &'a S,
    /// Tokens by volume and path.
    pub(crate) tokens: &'a BTreeMap<(String, String), String>,
}

/// What names a Secret or a ConfigMap, and which of its entries go where.
struct Reference<'a> {
    kind: &'static str,
    name: &'a str,
    items: Option<&'a [KeyToPath]>,
    optional: bool,
}

impl fmt::Debug for File {
    /// Never the content: it may be a key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "File({} bytes, mode {:o})",
            self.bytes.len(),
            self.mode
        )
    }
}

impl<S: Sources> Ingredients<'_, S> {
    /// The content of every volume that holds files of the API.
    pub(crate) fn volumes(&self, spec: &PodSpec) -> Result<VolumeContents, Missing> {
        let mut volumes = VolumeContents::new();
        for volume in spec.volumes.iter().flatten() {
            if let Some(content) = self.volume(volume)? {
                volumes.insert(volume.name.clone(), content);
            }
        }
        Ok(volumes)
    }

    fn volume(&self, volume: &Volume) -> Result<Option<Content>, Missing> {
        let mut content = Content::new();
        if let Some(secret) = &volume.secret {
            let reference = Reference {
                kind: "secret",
                name: secret.secret_name.as_deref().unwrap_or_default(),
                items: secret.items.as_deref(),
                optional: secret.optional.unwrap_or_default(),
            };
            self.add_entries(&reference, secret.default_mode, &mut content)?;
        } else if let Some(map) = &volume.config_map {
            let reference = Reference {
                kind: "configmap",
                name: &map.name,
                items: map.items.as_deref(),
                optional: map.optional.unwrap_or_default(),
            };
            self.add_entries(&reference, map.default_mode, &mut content)?;
        } else if let Some(fields) = &volume.downward_api {
            self.add_fields(fields.items.as_deref(), fields.default_mode, &mut content)?;
        } else if let Some(projected) = &volume.projected {
            for source in projected.sources.iter().flatten() {
                self.add_projection(&volume.name, source, projected.default_mode, &mut content)?;
            }
        } else {
            return Ok(None);
        }
        Ok(Some(content))
    }

    fn add_projection(
        &self,
        volume: &str,
        source: &VolumeProjection,
        mode: Option<i32>,
        content: &mut Content,
    ) -> Result<(), Missing> {
        if let Some(secret) = &source.secret {
            let reference = Reference {
                kind: "secret",
                name: &secret.name,
                items: secret.items.as_deref(),
                optional: secret.optional.unwrap_or_default(),
            };
            self.add_entries(&reference, mode, content)?;
        }
        if let Some(map) = &source.config_map {
            let reference = Reference {
                kind: "configmap",
                name: &map.name,
                items: map.items.as_deref(),
                optional: map.optional.unwrap_or_default(),
            };
            self.add_entries(&reference, mode, content)?;
        }
        if let Some(fields) = &source.downward_api {
            self.add_fields(fields.items.as_deref(), mode, content)?;
        }
        if let Some(token) = &source.service_account_token {
            let key = (volume.to_owned(), token.path.clone());
            let issued = self.tokens.get(&key).ok_or(Missing::Token)?;
            add(content, &token.path, issued.clone().into_bytes(), mode)?;
        }
        Ok(())
    }

    fn add_entries(
        &self,
        reference: &Reference<'_>,
        mode: Option<i32>,
        content: &mut Content,
    ) -> Result<(), Missing> {
        let Some(entries) = self.entries(reference)? else {
            return Ok(());
        };
        let Some(items) = reference.items.filter(|items| !items.is_empty()) else {
            for (key, bytes) in entries {
                add(content, &key, bytes, mode)?;
            }
            return Ok(());
        };
        for item in items {
            match entries.get(&item.key) {
                Some(bytes) => add(content, &item.path, bytes.clone(), item.mode.or(mode))?,
                None if reference.optional => {}
                None => return Err(self.no_key(reference.kind, reference.name, &item.key)),
            }
        }
        Ok(())
    }

    fn entries(&self, reference: &Reference<'_>) -> Result<Option<Entries>, Missing> {
        let (found, missing) = if reference.kind == "secret" {
            (
                self.sources.secret(self.namespace, reference.name),
                Missing::Secret(reference.name.to_owned()),
            )
        } else {
            (
                self.sources.config_map(self.namespace, reference.name),
                Missing::ConfigMap(reference.name.to_owned()),
            )
        };
        if found.is_none() && !reference.optional {
            return Err(missing);
        }
        Ok(found)
    }

    fn no_key(&self, kind: &'static str, name: &str, key: &str) -> Missing {
        Missing::Key {
            kind,
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            key: key.to_owned(),
        }
    }

    fn add_fields(
        &self,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: Option<i32>,
        content: &mut Content,
    ) -> Result<(), Missing> {
        for item in items.into_iter().flatten() {
            let value = match &item.field_ref {
                Some(field) => self
                    .fields
                    .resolve(&field.field_path)
                    .ok_or_else(|| Missing::Field(field.field_path.clone()))?,
                None => {
                    let resource = item
                        .resource_field_ref
                        .as_ref()
                        .map(|field| field.resource.clone());
                    return Err(Missing::Field(resource.unwrap_or_default()));
                }
            };
            add(content, &item.path, value.into_bytes(), item.mode.or(mode))?;
        }
        Ok(())
    }
}

/// The tokens that a pod's volumes hold: volume, and what is asked for.
pub(crate) fn tokens(spec: &PodSpec) -> impl Iterator<Item = (&str, &ServiceAccountTokenProjection)> {
    spec.volumes.iter().flatten().flat_map(|volume| {
        let sources = volume
            .projected
            .iter()
            .flat_map(|projected| projected.sources.iter().flatten());
        sources
            .filter_map(|source| source.service_account_token.as_ref())
            .map(|token| (volume.name.as_str(), token))
    })
}

/// A path that stays inside of its folder.
pub(crate) fn relative(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    let inside = path
        .components()
        .all(|component| matches!(component, Component::Normal(_)));
    (inside && path.components().next().is_some()).then_some(path)
}

fn add(content: &mut Content, path: &str, bytes: Vec<u8>, mode: Option<i32>) -> Result<(), Missing> {
    let hidden = path.starts_with("..");
    let relative = relative(path)
        .filter(|_| !hidden)
        .ok_or_else(|| Missing::Path(path.to_owned()))?;
    let mode = u32::try_from(mode.unwrap_or(MODE)).unwrap_or_default() & 0o777;
    content.insert(relative.to_owned(), File { bytes, mode });
    Ok(())
}

#[cfg(test)]
mod tests;
