//! File-based catalogs of operator bundles (FBC), for any program.
//!
//! A catalog is a tree of files, each a stream of JSON or YAML documents that are called blobs: `olm.package`, `olm.channel`,
//! `olm.bundle`, `olm.deprecations` (<https://olm.operatorframework.io/docs/reference/file-based-catalogs/>). Nearly all of its bytes are
//! manifests that only graphical consoles use. A [`CatalogReader`] takes one blob after the other from any stream and keeps what
//! upgrades are decided by, so that a catalog of a gigabyte needs a few megabytes; blobs of other schemas are passed over.
//!
//! A [`CatalogPackage`] knows its channels and finds the [`UpgradePath`] from what is installed to what is wanted, by the rule of
//! OLM v1: a bundle may follow another that it replaces, that it skips, or whose version is in its `skipRange`.
//!
//! ```
//! use catalog::{CatalogReader, UpgradeRequest};
//!
//! let files = r#"
//! schema: olm.package
//! name: widgets
//! defaultChannel: stable
//! ---
//! schema: olm.channel
//! package: widgets
//! name: stable
//! entries: [{name: widgets.v1.0.0}, {name: widgets.v1.1.0, replaces: widgets.v1.0.0}]
//! ---
//! {schema: olm.bundle, package: widgets, name: widgets.v1.0.0, image: "quay.io/widgets/bundle:1.0.0",
//!  properties: [{type: olm.package, value: {packageName: widgets, version: 1.0.0}}]}
//! ---
//! {schema: olm.bundle, package: widgets, name: widgets.v1.1.0, image: "quay.io/widgets/bundle:1.1.0",
//!  properties: [{type: olm.package, value: {packageName: widgets, version: 1.1.0}}]}
//! "#;
//! let mut reader = CatalogReader::default();
//! reader.read("widgets/catalog.yaml", files.as_bytes())?;
//! let read = reader.finish();
//! assert_eq!(read.problems, []);
//! let path = read.catalog.packages["widgets"].resolve(&UpgradeRequest::default())?;
//! assert_eq!(path.edges[0].bundle, "widgets.v1.1.0");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod blob;
mod documents;
#[cfg(feature = "generator")]
mod generator;
mod graph;
mod limits;
mod package;
mod problem;
mod reader;
#[cfg(test)]
mod tests;
mod text;
mod upgrade;

#[cfg(feature = "generator")]
pub use generator::{CatalogFormat, GeneratedCatalog};
pub use limits::CatalogLimits;
pub use package::{
    CatalogBundle, CatalogChannel, CatalogPackage, ChannelEntry, Deprecations, FileBasedCatalog,
};
pub use problem::CatalogProblem;
pub use reader::{CatalogReader, ReadCatalog, CatalogTooLarge};
pub use upgrade::{EdgeReason, InstalledRelease, ResolutionError, UpgradeEdge, UpgradePath, UpgradeRequest};
