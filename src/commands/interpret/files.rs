//! Customizations in files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::bail;
use interpreter::customization::{
    ConfiguredRetention, CustomizationProblem, CustomizationState, Customizations,
};
use serde_json::Value;

use crate::commands::documents;

/// A customization, and its file.
#[derive(Clone, Debug)]
pub(super) struct Customization {
    pub(super) file: PathBuf,
    pub(super) object: Value,
    /// Its field in a Config, if it is part of one.
    retention: Option<ConfiguredRetention>,
}

impl Customization {
    pub(super) fn new(file: &Path, object: Value) -> Self {
        Self {
            file: file.to_owned(),
            object,
            retention: None,
        }
    }

    /// Returns the customizations of a document: a Config has one for each retention.
    fn from_document(file: &Path, object: Value) -> anyhow::Result<Vec<Self>> {
        match ConfiguredRetention::from_config(&object) {
            None => Ok(vec![Self::new(file, object)]),
            Some(Ok(retentions)) => Ok(retentions
                .into_iter()
                .map(|retention| Self {
                    file: file.to_owned(),
                    object: retention.customization.clone(),
                    retention: Some(retention),
                })
                .collect()),
            Some(Err(problems)) => {
                let wrong: Vec<_> = problems
                    .iter()
                    .map(|problem| format!("{}: {problem}", file.display()))
                    .collect();
                bail!(wrong.join("\n"));
            }
        }
    }

    /// Returns a problem with the path of its field in the file.
    pub(super) fn problem(&self, problem: &CustomizationProblem) -> CustomizationProblem {
        match &self.retention {
            Some(retention) => retention.problem(problem),
            None => problem.clone(),
        }
    }
}

/// Reads customizations from files and folders.
pub(super) fn customizations(paths: &[PathBuf], recursive: bool) -> anyhow::Result<Vec<Customization>> {
    let mut found = Vec::new();
    for path in paths {
        let files = match path.is_dir() {
            true => documents::below(path, recursive)?,
            false => vec![path.clone()],
        };
        for file in files {
            for object in documents::read(&file, documents::LARGEST)? {
                found.extend(Customization::from_document(&file, object)?);
            }
        }
    }
    if found.is_empty() {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!("no customization found in {}", paths.join(", "));
    }
    Ok(found)
}

/// Compiles the customizations.
///
/// # Errors
///
/// All their problems, with file and field.
pub(super) fn source(customizations: &[Customization]) -> anyhow::Result<Arc<Customizations>> {
    let source = Customizations::default();
    let objects: Vec<_> = customizations
        .iter()
        .map(|customization| customization.object.clone())
        .collect();
    let mut wrong = Vec::new();
    for (customization, state) in customizations.iter().zip(source.replace(&objects)) {
        let (CustomizationState::Kept(problems) | CustomizationState::Unusable(problems)) = state else {
            continue;
        };
        let file = customization.file.display();
        let problems = problems.iter().map(|problem| customization.problem(problem));
        wrong.extend(problems.map(|problem| format!("{file}: {problem}")));
    }
    if !wrong.is_empty() {
        bail!(wrong.join("\n"));
    }
    Ok(Arc::new(source))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn read(text: &str) -> Result<Vec<Customization>, String> {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("config.yaml");
        fs::write(&file, text).unwrap();
        let read = customizations(std::slice::from_ref(&file), false).and_then(|customizations| {
            source(&customizations)?;
            Ok(customizations)
        });
        read.map_err(|error| error.to_string().replace(&format!("{}: ", file.display()), ""))
    }

    #[test]
    fn each_retention_of_a_config_is_a_customization() {
        let config = "
            apiVersion: config.karmada.io/v1alpha1
            kind: Config
            metadata: {name: c}
            spec:
              retentions:
              - {apiVersion: v1, kind: Service, fields: [.spec.clusterIP]}
              - {apiVersion: v1, kind: KIND, retentionLua: return desiredObj}
        ";
        let names: Vec<_> = read(&config.replace("KIND", "Pod"))
            .unwrap()
            .into_iter()
            .map(|customization| customization.object["metadata"]["name"].clone())
            .collect();
        assert_eq!(names, ["c/retentions[0]", "c/retentions[1]"]);
        for (kind, expected) in [
            ("''", "spec.retentions[1].kind: must not be empty"),
            (
                "Service",
                "spec.retentions[1]: has the same kind as retentions[0]",
            ),
        ] {
            assert_eq!(read(&config.replace("KIND", kind)).unwrap_err(), expected);
        }
    }
}
