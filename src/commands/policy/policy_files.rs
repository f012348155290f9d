//! Policies from files.

use std::{
    collections::BTreeMap,
    fmt::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{anyhow, bail};
use policy::{CompiledPolicy, Engines, PolicyKey, PolicyObject, PolicyProblem, PolicySet};
use serde_json::Value;
use windlass_object::{object, text::OneLine};

use super::problem::PolicyFileProblem;
use crate::commands::documents;

/// The policies of files, and all problems.
#[derive(Debug, Default)]
pub(in crate::commands) struct PolicyFiles {
    /// Readable policies, in the order of their files.
    pub(in crate::commands) policies: Vec<PolicyFile>,
    pub(super) problems: Vec<PolicyFileProblem>,
    keys: BTreeMap<PolicyKey, PathBuf>,
}

#[derive(Debug)]
pub(in crate::commands) struct PolicyFile {
    /// The file, as specified.
    pub(super) file: PathBuf,
    /// The policy as written.
    pub(super) object: PolicyObject,
    pub(in crate::commands) compiled: Arc<CompiledPolicy>,
}

impl PolicyFiles {
    /// Reads files, and the files in folders and their subfolders. In folders, other objects and files with
    /// cases are skipped.
    ///
    /// # Errors
    ///
    /// When a folder cannot be read.
    pub(in crate::commands) fn read(paths: &[PathBuf], engines: &Engines) -> anyhow::Result<Self> {
        let mut read = Self::default();
        for path in paths {
            if !path.is_dir() {
                read.add_file(path, false, engines);
                continue;
            }
            let files = documents::below(path, true)?;
            for file in files.iter().filter(|file| !is_cases(file)) {
                read.add_file(file, true, engines);
            }
        }
        if read.policies.is_empty() && read.problems.is_empty() {
            let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            bail!("no policy found in {}", paths.join(", "));
        }
        Ok(read)
    }

    /// Adds the policies of a file.
    pub(super) fn add_file(&mut self, file: &Path, may_be_others: bool, engines: &Engines) {
        let documents = match documents::read(file, documents::LARGEST) {
            Ok(documents) => documents,
            Err(error) => {
                let message = format!("{error:#}");
                // The path names the file already.
                let message = message
                    .strip_prefix(&file.display().to_string())
                    .map_or(&*message, |rest| rest.trim_start_matches([':', ' ']));
                return self.problems.push(PolicyFileProblem::for_file(file, message));
            }
        };
        if documents.is_empty() && !may_be_others {
            self.problems
                .push(PolicyFileProblem::for_file(file, "has no policy"));
        }
        for document in documents {
            if may_be_others && !is_of_group(&document) {
                continue;
            }
            self.add(file, &document, engines);
        }
    }

    pub(super) fn add(&mut self, file: &Path, policy: &Value, engines: &Engines) {
        let (object, unknown) = match PolicyObject::read(policy) {
            Ok(read) => read,
            Err(problems) => return self.note(file, problems),
        };
        self.note(file, unknown);
        if let Some(other) = self.keys.insert(object.key.clone(), file.to_owned()) {
            let message = format!("{} is also in {}", object.key, other.display());
            self.note(file, vec![PolicyProblem::new("metadata.name", message)]);
        }
        let compiled = CompiledPolicy::from_object(&object, engines);
        self.note(file, compiled.problems());
        self.policies.push(PolicyFile {
            file: file.to_owned(),
            object,
            compiled: Arc::new(compiled),
        });
    }

    fn note(&mut self, file: &Path, problems: Vec<PolicyProblem>) {
        let problems = problems.into_iter();
        self.problems
            .extend(problems.map(|problem| PolicyFileProblem::new(file, problem)));
    }

    /// Returns all policies for evaluation.
    pub(super) fn set(&self) -> PolicySet {
        PolicySet::new(self.policies.iter().map(|policy| Arc::clone(&policy.compiled)))
    }

    /// Returns the policies if there are no problems.
    ///
    /// # Errors
    ///
    /// All problems, one per line.
    pub(in crate::commands) fn into_valid(self) -> anyhow::Result<Self> {
        let mut told = String::new();
        for problem in &self.problems {
            let separator = if told.is_empty() { "" } else { "\n" };
            write!(told, "{separator}{problem}")?;
        }
        match told.is_empty() {
            true => Ok(self),
            false => Err(anyhow!(told)),
        }
    }
}

/// Reports whether the name of a file is that of test cases.
pub(super) fn is_cases(file: &Path) -> bool {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.is_some_and(|stem| stem == "cases" || stem.ends_with(".cases") || stem.ends_with("-cases"))
}

fn is_of_group(document: &Value) -> bool {
    let api_version = object::text(document, "/apiVersion").unwrap_or_default();
    let (group, _) = object::group_and_version(policy::api::POLICY_API_VERSION);
    object::group_and_version(api_version).0 == group
}

/// Returns the kind and name of an object.
pub(super) fn object_name(object: &Value) -> String {
    let text = |pointer| object::text(object, pointer).unwrap_or_default();
    let name = match (text("/metadata/namespace"), text("/metadata/name")) {
        ("", "") => text("/metadata/generateName").to_owned(),
        ("", name) => name.to_owned(),
        (namespace, "") => format!("{namespace}/{}", text("/metadata/generateName")),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let shown = format!("{} {name}", text("/kind"));
    OneLine(shown.trim()).to_string()
}
