//! registry+v1 bundles: from files to a typed, lossless model.

mod cluster_service_version;
mod problem;

use std::collections::BTreeMap;

use serde_json::Value;

pub use cluster_service_version::{
    ClusterServiceVersion, DeploymentSpec, InstallMode, Permission, WebhookDefinition, WebhookType,
};
pub use problem::Problem;

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

impl Bundle {
    /// The typed view of the ClusterServiceVersion.
    pub fn csv(&self) -> ClusterServiceVersion<'_> {
        ClusterServiceVersion::new(&self.csv.object)
    }
}
