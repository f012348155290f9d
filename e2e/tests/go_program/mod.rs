//! Programs in Go that tests hold ours against.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Builds `e2e/NAME`; [`None`] without Go, which is said, with what cannot be tested so.
pub(crate) fn build(name: &str, what: &str) -> anyhow::Result<Option<PathBuf>> {
    let go = Command::new("go").arg("version").stdout(Stdio::null()).status();
    if go.is_err() {
        eprintln!("skipped: there is no Go to build {what} with: https://go.dev/dl");
        return Ok(None);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("go-program");
    let built = Command::new(script).arg(name).stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(built.status.success(), "e2e/{name} cannot be built");
    Ok(Some(String::from_utf8(built.stdout)?.trim_end().into()))
}
