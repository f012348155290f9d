//! Files of YAML or JSON that people give to commands.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use windlass_object::yaml;

/// The documents of a file; `-` is standard input.
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
