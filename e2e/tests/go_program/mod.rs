//! Builds Go programs that tests compare ours with.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Builds `e2e/NAME`. Without Go, it prints that tests of `what` are skipped and returns [`None`].
pub(crate) fn build(name: &str, what: &str) -> anyhow::Result<Option<PathBuf>> {
    let go = Command::new("go").arg("version").stdout(Stdio::null()).status();
    if go.is_err() {
        eprintln!("skipped: building {what} needs Go, https://go.dev/dl");
        return Ok(None);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("go-program");
    let built = Command::new(script).arg(name).stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(built.status.success(), "e2e/{name} cannot be built");
    Ok(Some(String::from_utf8(built.stdout)?.trim_end().into()))
}
