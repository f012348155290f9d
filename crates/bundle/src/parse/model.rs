//! A bundle and its manifests.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_object::{JsonPath, Problem, Rule, object};

use super::cluster_service_version::ClusterServiceVersion;

/// The files of a bundle: content by path relative to the bundle's folder, with `/` as separator.
pub type Files = BTreeMap<String, Vec<u8>>;

/// One object of a bundle and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file, relative to the bundle.
    pub file: String,
    /// The index of the document in the file, from 0, if the file has several.
    pub document: Option<usize>,
    /// JSON path of the object inside its document: `$`, or `$.items[3]` for an item of a `List`.
    pub path: String,
    /// The object, exactly as written.
    pub object: Value,
}

/// A parsed bundle. Objects stay JSON; the typed views only read them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The package, from `metadata/annotations.yaml`; may be empty in an unchecked bundle.
    pub package: String,
    /// The channels that the annotations name.
    pub channels: Vec<String>,
    /// The ClusterServiceVersion, with `metadata/properties.yaml` merged into its `olm.properties`.
    pub csv: Manifest,
    /// `metadata/dependencies.yaml`, as written; [`Requirements`](crate::requirements::Requirements)
    /// interprets it.
    pub dependencies: Option<Manifest>,
    /// CustomResourceDefinitions, in file order.
    pub crds: Vec<Manifest>,
    /// Everything else, in file order.
    pub others: Vec<Manifest>,
}

/// The readable part of a bundle, and the problems of the rest.
#[derive(Debug)]
pub struct ParsedBundle {
    /// The bundle; `None` when it has no ClusterServiceVersion or more than one.
    pub bundle: Option<Bundle>,
    /// The problems, in file order.
    pub problems: Vec<Problem>,
}

impl Manifest {
    /// `metadata.name`; empty when absent.
    pub fn name(&self) -> &str {
        object::text(&self.object, "/metadata/name").unwrap_or_default()
    }

    /// `kind`; empty when absent.
    pub fn kind(&self) -> &str {
        object::text(&self.object, "/kind").unwrap_or_default()
    }

    /// Creates a problem of this object, at `path` below the object.
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

impl Bundle {
    /// The typed view of the ClusterServiceVersion.
    pub fn csv(&self) -> ClusterServiceVersion<'_> {
        ClusterServiceVersion::new(&self.csv.object)
    }

    /// Every object, the ClusterServiceVersion first.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        [&self.csv].into_iter().chain(&self.crds).chain(&self.others)
    }
}
