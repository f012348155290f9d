//! A bundle and its manifests.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_object::{JsonPath, Problem, Rule, object};

use super::{cluster_service_version::ClusterServiceVersion, documents, metadata, rule, shape};

/// The files of a bundle: path below the bundle's folder, with `/` between parts, to content.
pub type Files = BTreeMap<String, Vec<u8>>;

/// One object of a bundle and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file, relative to the bundle.
    pub file: String,
    /// Which document of the file, counted from 0, when the file holds more than one.
    pub document: Option<usize>,
    /// JSON path of the object inside its document: `$`, or `$.items[3]` for an item of a `List`.
    pub path: String,
    /// The object, exactly as written.
    pub object: Value,
}

/// A parsed bundle. Objects stay JSON; the typed views only read them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The package, from `metadata/annotations.yaml`; may be empty in a bundle that was not checked.
    pub package: String,
    /// The channels that the annotations name.
    pub channels: Vec<String>,
    /// The ClusterServiceVersion, with `metadata/properties.yaml` merged into its `olm.properties`.
    pub csv: Manifest,
    /// CustomResourceDefinitions, in file order.
    pub crds: Vec<Manifest>,
    /// Everything else, in file order.
    pub others: Vec<Manifest>,
}

/// As much of a bundle as could be read, and everything that kept the rest from being read.
#[derive(Debug)]
pub struct ParsedBundle {
    /// The bundle; `None` when it has no ClusterServiceVersion or more than one.
    pub bundle: Option<Bundle>,
    /// What is wrong, in file order.
    pub problems: Vec<Problem>,
}

/// The CustomResourceDefinitions in one file outside a bundle; its other objects are passed over.
///
/// # Errors
///
/// Everything that keeps them from being understood: syntax, fields of a wrong type.
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

// === impl Manifest ===

impl Manifest {
    /// `metadata.name`; empty when absent.
    pub fn name(&self) -> &str {
        object::text(&self.object, "/metadata/name").unwrap_or_default()
    }

    /// `kind`; empty when absent.
    pub fn kind(&self) -> &str {
        object::text(&self.object, "/kind").unwrap_or_default()
    }

    /// A problem of this object, at `path` below the object.
    pub fn problem(&self, path: &JsonPath, rule: Rule, message: impl Into<String>) -> Problem {
        let document = self
            .document
            .map_or_else(String::new, |index| format!("[{index}]"));
        let object = self.path.strip_prefix('$').unwrap_or(&self.path);
        Problem {
            file: self.file.clone(),
            path: format!("${document}{object}{path}"),
            rule: rule.name,
            message: message.into(),
        }
    }
}

// === impl Bundle ===

impl Bundle {
    /// Reads the files of a bundle, as OLM v1 does (`internal/operator-controller/rukpak/bundle/source/source.go`),
    /// but never loses an object: more than one ClusterServiceVersion is refused.
    ///
    /// # Errors
    ///
    /// Everything that keeps the bundle from being understood: syntax, missing files, fields of a wrong type.
    pub fn parse(files: &Files) -> Result<Self, Vec<Problem>> {
        match Self::read(files) {
            ParsedBundle {
                bundle: Some(bundle),
                problems,
            } if problems.is_empty() => Ok(bundle),
            ParsedBundle { problems, .. } => Err(problems),
        }
    }

    /// Reads what can be read, so that a checker can report the problems of the rest as well.
    pub fn read(files: &Files) -> ParsedBundle {
        let mut problems = Vec::new();
        let annotations = metadata::annotations(files, &mut problems);
        let properties = metadata::properties(files, &mut problems);
        let before = problems.len();
        let manifests = documents::manifests(files, &mut problems);
        let complete = problems.len() == before;

        let (mut csvs, rest): (Vec<_>, Vec<_>) = manifests
            .into_iter()
            .partition(|manifest| manifest.kind() == "ClusterServiceVersion");
        let (crds, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|manifest| manifest.kind() == "CustomResourceDefinition");

        let bundle = match csvs.as_mut_slice() {
            [csv] => {
                metadata::merge_properties(csv, properties, &mut problems);
                Some(Self {
                    package: annotations.package,
                    channels: annotations.channels,
                    csv: csv.clone(),
                    crds,
                    others,
                })
            }
            [] => {
                // A file that could not be read may be the one that holds it.
                if complete {
                    problems.push(Problem::of_bundle(
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
        if let Some(bundle) = &bundle {
            shape::check(bundle, &mut problems);
        }
        Problem::sort(&mut problems);
        ParsedBundle { bundle, problems }
    }

    /// The typed view of the ClusterServiceVersion.
    pub fn csv(&self) -> ClusterServiceVersion<'_> {
        ClusterServiceVersion::new(&self.csv.object)
    }

    /// Every object, the ClusterServiceVersion first.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        [&self.csv].into_iter().chain(&self.crds).chain(&self.others)
    }
}
