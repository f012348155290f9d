//! YAML and JSON files in arguments.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use windlass_object::yaml;

/// Maximum size of a file with objects, in bytes.
pub(super) const LARGEST: u64 = 20 << 20;

/// The extensions of files that are read in folders, as in kubectl.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Reads the documents of a file; `-` is standard input.
///
/// # Errors
///
/// When it cannot be read, is larger than `most` bytes, or is neither YAML nor JSON.
pub(super) fn read(path: &Path, most: u64) -> anyhow::Result<Vec<Value>> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(fs::File::open(path).with_context(|| format!("cannot open {shown}"))?),
    };
    let read = source.take(most + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {shown}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        bail!("{shown} is larger than {most} bytes");
    }
    yaml::documents(&bytes).map_err(|problem| anyhow!("{shown}: {problem}"))
}

/// Reads the only object of a file; `-` is standard input.
///
/// # Errors
///
/// When it cannot be read, or does not hold exactly one object.
pub(super) fn object(path: &Path) -> anyhow::Result<Value> {
    match <[Value; 1]>::try_from(read(path, LARGEST)?) {
        Ok([object]) if object.is_object() => Ok(object),
        Ok(_) => bail!("{} must contain an object", path.display()),
        Err(documents) => bail!(
            "{} must contain one object, not {}",
            path.display(),
            documents.len()
        ),
    }
}

/// Returns the YAML and JSON files in a folder, sorted by name.
///
/// # Errors
///
/// When a folder cannot be read.
pub(super) fn below(folder: &Path, recursive: bool) -> anyhow::Result<Vec<PathBuf>> {
    let shown = folder.display();
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {shown}"))?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.with_context(|| format!("cannot read {shown}"))?;
    paths.sort();
    for path in paths {
        // A link can point to a folder that contains it.
        let is_folder = path.is_dir() && !path.is_symlink();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if is_folder && recursive {
            files.extend(below(&path, recursive)?);
        } else if path.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            files.push(path);
        }
    }
    Ok(files)
}
