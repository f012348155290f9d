//! Folders of samples, read.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use policy::cases::{CasePolicy, PolicyCase, PolicyCases};
use serde_json::Value;
use windlass_object::yaml;

/// The cases that are left out, and why.
const LEFT_OUT: &[(&str, &str)] = &[(
    "oversell: a namespace that is not known keeps nobody out silently",
    "an API server refuses it itself: it has no objects without their namespace",
)];

/// A folder of samples.
pub(super) struct PolicySample {
    pub(super) name: String,
    pub(super) policies: Vec<Value>,
    pub(super) cases: PolicyCases,
}

fn is_left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, _)| *left_out == name)
}

// === impl PolicySample ===

impl PolicySample {
    /// All of them.
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

    /// The cases, with their full names, but for those that are left out.
    pub(super) fn cases(&self) -> impl Iterator<Item = (String, &PolicyCase)> {
        let named = |case: &'_ PolicyCase| format!("{}: {}", self.name, case.name);
        let cases = self.cases.cases.iter().map(move |case| (named(case), case));
        cases.filter(|(name, _)| !is_left_out(name))
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
