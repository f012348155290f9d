//! A typed view of a CRD.

use std::{cmp::Ordering, fmt};

use serde_json::Value;
use structural_schema::Structural;

use crate::schema::TypeSchema;

/// The parts of a CRD that are needed to serve its resources.
pub struct Definition {
    /// The API group.
    pub group: String,
    /// `spec.names`.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The versions, in the order of the CRD.
    pub versions: Vec<CrdVersion>,
    /// `spec.conversion`.
    pub conversion: Value,
    /// The whole `spec`. Its change ends watches.
    pub spec: Value,
    /// Whether the CRD is being deleted: objects can no longer be created.
    pub terminating: bool,
}

/// `spec.names`.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The plural, which names the resource in paths.
    pub plural: String,
    /// The singular.
    pub singular: String,
    /// The kind.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
}

/// One of `spec.versions`.
#[derive(Debug)]
pub struct CrdVersion {
    /// The name, for example `v1`.
    pub name: String,
    /// `served`.
    pub served: bool,
    /// `storage`.
    pub storage: bool,
    /// The warning for clients of a deprecated version.
    pub deprecation: Option<String>,
    /// The subresources, of `status` and `scale`.
    pub subresources: Vec<String>,
    /// `subresources.scale`.
    pub scale: Value,
    /// `additionalPrinterColumns`.
    pub columns: Vec<Column>,
    /// JSON paths of `selectableFields`, for example `.spec.color`.
    pub selectable: Vec<String>,
    /// The schema.
    pub schema: Structural,
    /// How its lists and maps merge.
    pub types: TypeSchema,
    /// The schema as it was written.
    pub raw_schema: Value,
}

/// One of `additionalPrinterColumns`.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub column_type: String,
    /// The path of the value.
    pub json_path: String,
    /// 0 for columns that are always shown.
    pub priority: i64,
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("group", &self.group)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Definition {
    /// Reads a validated CRD.
    pub fn new(crd: &Value) -> Self {
        let spec = &crd["spec"];
        let names = &spec["names"];
        Self {
            group: text(&spec["group"]),
            names: Names {
                plural: text(&names["plural"]),
                singular: text(&names["singular"]),
                kind: text(&names["kind"]),
                list_kind: text(&names["listKind"]),
                short_names: texts(&names["shortNames"]),
                categories: texts(&names["categories"]),
            },
            namespaced: spec["scope"] == "Namespaced",
            versions: spec["versions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(CrdVersion::new)
                .collect(),
            conversion: spec["conversion"].clone(),
            spec: spec.clone(),
            terminating: crd["metadata"]["deletionTimestamp"].is_string(),
        }
    }

    /// Returns a version by its name.
    pub fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns the name of the storage version.
    pub fn storage_version(&self) -> &str {
        self.versions
            .iter()
            .find(|version| version.storage)
            .map_or("", |version| &version.name)
    }

    /// Returns the names of the served versions: GA before beta before alpha, newer before older.
    pub fn versions_by_priority(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .versions
            .iter()
            .filter(|version| version.served)
            .map(|version| version.name.clone())
            .collect();
        names.sort_by(|a, b| compare_versions(a, b));
        names
    }
}

impl CrdVersion {
    fn new(version: &Value) -> Self {
        let raw_schema = version["schema"]["openAPIV3Schema"].clone();
        let deprecation = (version["deprecated"] == true).then(|| text(&version["deprecationWarning"]));
        let columns = version["additionalPrinterColumns"]
            .as_array()
            .into_iter()
            .flatten();
        Self {
            name: text(&version["name"]),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecation,
            subresources: ["status", "scale"]
                .into_iter()
                .filter(|name| version["subresources"].get(name).is_some())
                .map(str::to_owned)
                .collect(),
            scale: version["subresources"]["scale"].clone(),
            columns: columns
                .map(|column| Column {
                    name: text(&column["name"]),
                    column_type: text(&column["type"]),
                    json_path: text(&column["jsonPath"]),
                    priority: column["priority"].as_i64().unwrap_or(0),
                })
                .collect(),
            selectable: version["selectableFields"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|field| text(&field["jsonPath"]))
                .collect(),
            schema: Structural::new(&raw_schema),
            types: TypeSchema::custom(raw_schema.clone()),
            raw_schema,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(text).collect()
}

/// Compares versions by Kubernetes's priority, the preferred first (`k8s.io/apimachinery/pkg/version`).
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse_version(a), parse_version(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Returns stability (2 GA, 1 beta, 0 alpha), major and minor.
fn parse_version(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    match &rest[digits..] {
        "" => Some((2, major, 0)),
        suffix => {
            let (stability, minor) = match suffix.strip_prefix("beta") {
                Some(minor) => (1, minor),
                None => (0, suffix.strip_prefix("alpha")?),
            };
            Some((stability, major, minor.parse().ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_in_kubernetes() {
        let mut names = ["v1alpha1", "foo1", "v2", "v1beta2", "v1", "v10", "v1beta1", "bar"];
        names.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(
            names,
            ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo1"]
        );
    }
}
