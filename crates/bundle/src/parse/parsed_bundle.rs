//! Parses the files of a bundle and collects their problems.

use windlass_object::{JsonPath, Problem};

use super::{
    documents, metadata,
    model::{Bundle, Files, Manifest, ParsedBundle},
    rule, shape, yaml_1_1,
};

/// Parses the CustomResourceDefinitions in one file outside a bundle; skips other objects.
///
/// # Errors
///
/// Syntax errors, and fields of a wrong type.
pub fn read_crds(file: &str, bytes: &[u8]) -> Result<Vec<Manifest>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut manifests = documents::file(file, bytes, &mut problems);
    manifests.retain(|manifest| manifest.kind() == "CustomResourceDefinition");
    for manifest in &manifests {
        shape::check_crd(manifest, &mut problems);
    }
    if problems.is_empty() {
        Ok(manifests)
    } else {
        Problem::sort(&mut problems);
        Err(problems)
    }
}

impl Bundle {
    /// Parses the files of a bundle, as OLM v1 does
    /// (`internal/operator-controller/rukpak/bundle/source/source.go`), but never drops an object: more than
    /// one ClusterServiceVersion is an error.
    ///
    /// # Errors
    ///
    /// Syntax errors, missing files, and fields of a wrong type.
    pub fn parse(files: &Files) -> Result<Self, Vec<Problem>> {
        match Self::read(files) {
            ParsedBundle {
                bundle: Some(bundle),
                problems,
            } if problems.is_empty() => Ok(bundle),
            ParsedBundle { problems, .. } => Err(problems),
        }
    }

    /// Parses as much as possible, so that checks can report the problems of the rest as well.
    pub fn read(files: &Files) -> ParsedBundle {
        let mut problems = Vec::new();
        let annotations = metadata::annotations(files, &mut problems);
        let properties = metadata::properties(files, &mut problems);
        let dependencies = metadata::dependencies(files, &mut problems);
        let before = problems.len();
        let manifests = documents::manifests(files, &mut problems);
        let complete = problems.len() == before;

        let (mut csvs, rest): (Vec<_>, Vec<_>) = manifests
            .into_iter()
            .partition(|manifest| manifest.kind() == "ClusterServiceVersion");
        let (crds, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|manifest| manifest.kind() == "CustomResourceDefinition");

        let mut bundle = match csvs.as_mut_slice() {
            [csv] => {
                metadata::merge_properties(csv, properties, &mut problems);
                Some(Self {
                    package: annotations.package,
                    channels: annotations.channels,
                    csv: csv.clone(),
                    dependencies,
                    crds,
                    others,
                })
            }
            [] => {
                // An unreadable file may contain the ClusterServiceVersion.
                if complete {
                    problems.push(Problem::in_bundle(
                        "manifests",
                        rule::CSV_MISSING,
                        "no ClusterServiceVersion found in \"manifests\"",
                    ));
                }
                None
            }
            several => {
                let names: Vec<&str> = several.iter().map(Manifest::name).collect();
                let message = format!(
                    "bundle contains several ClusterServiceVersions: {}",
                    names.join(", ")
                );
                problems.extend(
                    several
                        .iter()
                        .map(|csv| csv.problem(&JsonPath::root(), rule::CSV_DUPLICATE, message.clone())),
                );
                None
            }
        };
        if let Some(bundle) = &mut bundle {
            yaml_1_1::read_booleans(bundle);
            shape::check(bundle, &mut problems);
        }
        Problem::sort(&mut problems);
        ParsedBundle { bundle, problems }
    }
}
