//! File-based catalogs of operator bundles (FBC).
//!
//! A catalog is a tree of files, each a stream of JSON or YAML documents called blobs: `olm.package`,
//! `olm.channel`, `olm.bundle`, `olm.deprecations`
//! (<https://olm.operatorframework.io/docs/reference/file-based-catalogs/>). Most of its bytes are manifests
//! that only graphical consoles use. A [`CatalogReader`] reads one blob at a time from any stream and keeps
//! only the data that upgrades depend on, so that a catalog of a gigabyte needs a few megabytes. It skips
//! blobs of other schemas.
//!
//! A [`CatalogPackage`] contains its channels and finds the [`UpgradePath`] from the installed bundle to the
//! requested version, by the rule of OLM v1: a bundle may follow another that it replaces, that it skips, or
//! whose version is in its `skipRange`.
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
pub use reader::{CatalogReader, CatalogTooLarge, ReadCatalog};
pub use upgrade::{EdgeReason, InstalledRelease, ResolutionError, UpgradeEdge, UpgradePath, UpgradeRequest};
