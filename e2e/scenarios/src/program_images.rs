//! Images with local programs, for the nodes of a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use oci::{
    ImageReference, PackedImage, PackedLayer, RegistriesConfig, RegistryClient, RegistryCredentials,
    RegistryOptions, registries::RegistryEntry,
};
use parking_lot::Mutex;
use serde_json::json;
use windlass_node::Program;

/// The images that this process has pushed: each names the same program in all scenarios.
static PUSHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The user of the images, as in the image of Windlass.
const USER: &str = "65532:65532";

/// Pushes the images that this process has not pushed yet.
///
/// # Errors
///
/// As [`push`].
pub(crate) async fn ensure(registry: &str, images: &BTreeMap<String, Program>) -> anyhow::Result<()> {
    let is_missing = |name: &str| !PUSHED.lock().contains(name);
    let missing = images.iter().filter(|(name, _)| is_missing(name));
    let missing: BTreeMap<_, _> = missing
        .map(|(name, program)| (name.clone(), program.clone()))
        .collect();
    push(registry, &missing).await?;
    PUSHED.lock().extend(missing.into_keys());
    Ok(())
}

/// Packs programs with their libraries, and pushes them to a registry without TLS, from which the nodes pull
/// every image. Returns the pushed images by digest, in the same order.
///
/// # Errors
///
/// Fails if a program cannot be read, or the registry rejects an image.
pub async fn push(registry: &str, images: &BTreeMap<String, Program>) -> anyhow::Result<Vec<ImageReference>> {
    push_with(registry, &RegistryCredentials::default(), images).await
}

/// Like [`push`], to a registry that requires credentials.
///
/// # Errors
///
/// As [`push`].
pub(crate) async fn push_with(
    registry: &str,
    credentials: &RegistryCredentials,
    images: &BTreeMap<String, Program>,
) -> anyhow::Result<Vec<ImageReference>> {
    let entry = RegistryEntry {
        prefix: registry.to_owned(),
        location: registry.to_owned(),
        insecure: true,
        ..RegistryEntry::default()
    };
    let client = RegistryClient::new(RegistryOptions {
        registries: RegistriesConfig {
            registry: vec![entry],
            ..RegistriesConfig::default()
        },
        proxies: false,
        ..RegistryOptions::default()
    })?;
    let mut layers: BTreeMap<&Path, PackedLayer> = BTreeMap::new();
    let mut pushed = Vec::new();
    for (name, program) in images {
        let image: ImageReference = name.parse()?;
        let path = program.path.as_path();
        if !layers.contains_key(path) {
            let files = files(path).with_context(|| format!("packing {}", path.display()))?;
            layers.insert(path, PackedLayer::executable(&files)?);
        }
        let entrypoint: Vec<_> = [inside(path)?]
            .into_iter()
            .chain(program.arguments.iter().cloned())
            .collect();
        let packed =
            PackedImage::with_config(&layers[path], &json!({"Entrypoint": entrypoint, "User": USER}))?;
        let tag = image.tag.as_deref().unwrap_or("latest");
        let destination: ImageReference = format!("{registry}/{}:{tag}", image.repository).parse()?;
        let digest = client.push(&destination, credentials, &packed).await?;
        pushed.push(image.with_digest(digest));
    }
    Ok(pushed)
}

/// Returns the path of a program in its image.
fn inside(program: &Path) -> anyhow::Result<String> {
    let name = program.file_name().and_then(|name| name.to_str());
    Ok(format!("/{}", name.context("a program without a name")?))
}

/// Reads a program and the libraries that it is linked with, by their paths in the image.
fn files(program: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut add = |path: &Path, inside: &str| {
        let content = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        files.insert(inside.trim_start_matches('/').to_owned(), content);
        anyhow::Ok(())
    };
    add(program, &inside(program)?)?;
    for library in libraries(program)? {
        add(&library, &library.to_string_lossy())?;
    }
    Ok(files)
}

/// Returns the libraries of a program; none if it is static.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output().context("running ldd")?;
    if !listed.status.success() {
        return Ok(Vec::new());
    }
    Ok(String::from_utf8_lossy(&listed.stdout)
        .lines()
        .filter_map(library)
        .collect())
}

/// Returns the path in a line of `ldd`, such as `libm.so.6 => /lib/libm.so.6 (0x00007f)`.
fn library(line: &str) -> Option<PathBuf> {
    let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
    Some(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_lines_of_ldd() {
        for (line, expected) in [
            ("\tlinux-vdso.so.1 (0x00007fd8c3bee000)", None),
            (
                "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)",
                Some("/lib/x86_64-linux-gnu/libm.so.6"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007fd8c3bf0000)",
                Some("/lib64/ld-linux-x86-64.so.2"),
            ),
            ("\tstatically linked", None),
        ] {
            assert_eq!(library(line), expected.map(PathBuf::from), "{line}");
        }
    }
}
