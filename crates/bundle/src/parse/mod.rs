//! registry+v1 bundles: parses files into a typed, lossless model.
//!
//! ```text
//! files -> documents -> manifests -> Bundle
//!         (yaml)       (lists        (sorted by kind, annotations and
//!                       flattened)    properties merged, types checked)
//! ```

mod cluster_service_version;
pub mod crds;
mod documents;
mod metadata;
mod model;
mod parsed_bundle;
pub mod rule;
mod shape;
#[cfg(test)]
mod tests;
mod yaml_1_1;

pub use cluster_service_version::{
    ApiServiceDefinition, ClusterServiceVersion, DeploymentSpec, InstallMode, Permission, WebhookDefinition,
    WebhookType,
};
pub use model::{Bundle, Files, Manifest, ParsedBundle};
pub use parsed_bundle::read_crds;
