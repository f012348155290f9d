//! Customizations and objects from files.

use std::{path::PathBuf, sync::Arc};

use anyhow::bail;
use interpreter::customization::{CustomizationState, Customizations};
use serde_json::Value;

use crate::commands::documents;

/// A customization, and where it is from.
#[derive(Clone, Debug)]
pub(super) struct Customization {
    pub(super) file: PathBuf,
    pub(super) object: Value,
}

/// The customizations of files, and of the files in folders.
pub(super) fn customizations(paths: &[PathBuf], recursive: bool) -> anyhow::Result<Vec<Customization>> {
    let mut found = Vec::new();
    for path in paths {
        let files = match path.is_dir() {
            true => documents::below(path, recursive)?,
            false => vec![path.clone()],
        };
        for file in files {
            let objects = documents::read(&file, documents::LARGEST)?;
            found.extend(objects.into_iter().map(|object| Customization {
                file: file.clone(),
                object,
            }));
        }
    }
    if found.is_empty() {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!("no customization found in {}", paths.join(", "));
    }
    Ok(found)
}

/// What they answer.
///
/// # Errors
///
/// All that is wrong with any of them, with its file and field.
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
        wrong.extend(problems.iter().map(|problem| format!("{file}: {problem}")));
    }
    if !wrong.is_empty() {
        bail!(wrong.join("\n"));
    }
    Ok(Arc::new(source))
}
