//! Rewrites stored objects after the storage version of a CustomResourceDefinition has changed.
//!
//! `status.storedVersions` names every version in which objects may be stored; all of them must stay in
//! `spec.versions` (apiextensions/v1, `CustomResourceDefinitionStatus`). It alone determines whether there is
//! anything to do:
//!
//! ```text
//! storedVersions holds others -> settling: until every API server stores the new version
//!                             -> rewriting, page by page -> storedVersions reduced -> an old version may go
//! ```
//!
//! [`Migration`] is the progress. It is kept in the status, for users and to resume. Without it the migration
//! restarts, as it does if the storage version may have changed back and forth: see
//! [`StorageVersionHistory`]. Other changes of the CRD, such as its CA bundle, do not affect the version in
//! which objects are stored.

mod converter;
mod history;
mod migration;
#[cfg(test)]
mod tests;

pub use converter::converter;
pub use history::StorageVersionHistory;
pub use migration::{
    Migration, MigrationStep, is_stored_as_desired, is_stored_in_one_version, next_step,
    stored_versions_patch,
};
