//! `windlass check --crd-upgrade`: breaking changes between two sets of CustomResourceDefinitions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use windlass_bundle::{
    crds,
    sources::{self, PathContents},
};
use windlass_crd::upgrade_safety::{self, Crds, Exception, Finding, Policy};
use windlass_object::Problem;

/// The CRDs to compare.
#[derive(Debug)]
pub(super) struct CrdUpgradeArgs {
    pub(super) old: PathBuf,
    pub(super) new: PathBuf,
    pub(super) exceptions: Option<PathBuf>,
}

impl CrdUpgradeArgs {
    /// Compares the CRDs.
    ///
    /// # Errors
    ///
    /// Every problem of the input files, with file and field, one per line.
    pub(super) fn findings(&self) -> anyhow::Result<Vec<Finding>> {
        let old = crds(&self.old)?;
        let new = crds(&self.new)?;
        let exceptions = self.exceptions.as_deref().map(exceptions).transpose()?;
        let policy = Policy {
            lenient: false,
            exceptions: exceptions.unwrap_or_default(),
        };
        Ok(upgrade_safety::compare_all(&old, &new, &policy))
    }
}

fn crds(path: &Path) -> anyhow::Result<Crds> {
    let name = path.display().to_string();
    let contents = sources::load_any(path).map_err(|error| match error.file() {
        file if file == name => anyhow::anyhow!("{file}: {error}"),
        file => anyhow::anyhow!("{name}: {file}: {error}"),
    })?;
    match contents {
        PathContents::Bundle(files) => {
            crds::from_bundle(&files).map_err(|problems| invalid_input(&problems, &format!("{name}: ")))
        }
        PathContents::File(bytes) => {
            crds::from_file(&name, &bytes).map_err(|problems| invalid_input(&problems, ""))
        }
    }
}

fn exceptions(path: &Path) -> anyhow::Result<Vec<Exception>> {
    let name = path.display().to_string();
    let bytes = fs::read(path).with_context(|| format!("{name}: cannot be read"))?;
    Exception::parse(&name, &bytes).map_err(|problems| invalid_input(&problems, ""))
}

/// Returns the problems as one error. `prefix` names the bundle that has the files.
fn invalid_input(problems: &[Problem], prefix: &str) -> anyhow::Error {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("{prefix}{problem}"))
        .collect();
    anyhow::anyhow!(lines.join("\n"))
}
