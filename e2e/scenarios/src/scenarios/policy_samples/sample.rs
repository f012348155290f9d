//! Reads folders of samples.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use policy::cases::{CasePolicy, PolicyCase, PolicyCases};
use serde_json::Value;
use windlass_object::yaml;

/// Skipped cases, each with the reason.
const SKIPPED: &[(&str, &str)] = &[(
    "oversell: an unknown namespace is an error",
    "the API server itself refuses it: every object needs an existing namespace",
)];

/// A folder of samples.
pub(super) struct PolicySample {
    pub(super) name: String,
    pub(super) policies: Vec<Value>,
    pub(super) cases: PolicyCases,
}

fn is_skipped(name: &str) -> bool {
    SKIPPED.iter().any(|(skipped, _)| *skipped == name)
}

impl PolicySample {
    /// Reads all samples.
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        let samples: PathBuf = [
            env!("CARGO_MANIFEST_DIR"),
            "..",
            "..",
            "crates",
            "policy",
            "examples",
        ]
        .iter()
        .collect();
        let mut folders = BTreeSet::new();
        for entry in fs::read_dir(&samples).with_context(|| format!("reading {}", samples.display()))? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                folders.insert((name, path));
            }
        }
        let read = folders.into_iter().map(|(name, path)| {
            let shown = name.clone();
            Self::read(name, &path).with_context(|| shown)
        });
        read.collect()
    }

    /// Returns the cases with their full names, without skipped ones.
    pub(super) fn cases(&self) -> impl Iterator<Item = (String, &PolicyCase)> {
        let named = |case: &'_ PolicyCase| format!("{}: {}", self.name, case.name);
        let cases = self.cases.cases.iter().map(move |case| (named(case), case));
        cases.filter(|(name, _)| !is_skipped(name))
    }

    fn read(name: String, folder: &Path) -> anyhow::Result<Self> {
        let documents = |file: &str| {
            let bytes = fs::read(folder.join(file)).with_context(|| format!("reading {file}"))?;
            yaml::documents(&bytes).map_err(|problem| anyhow!("{file}: {problem}"))
        };
        let cases = documents("cases.yaml")?;
        let cases = cases.first().context("no cases")?;
        let cases = PolicyCases::read(cases).map_err(|problems| anyhow!("{problems:?}"))?;
        let mut policies = Vec::new();
        for policy in &cases.policies {
            match policy {
                CasePolicy::File(file) => policies.extend(documents(file)?),
                CasePolicy::Inline(policy) => policies.push(policy.clone()),
            }
        }
        Ok(Self {
            name,
            policies,
            cases,
        })
    }
}
