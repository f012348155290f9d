//! Rewriting stored objects after the storage version of a CustomResourceDefinition has moved.
//!
//! `status.storedVersions` names every version in which objects may be stored; none of them may leave `spec.versions`
//! (apiextensions/v1, `CustomResourceDefinitionStatus`). Whether there is anything to do is read there, and nowhere else:
//!
//! ```text
//! storedVersions holds others -> settling: until every API server stores the new version
//!                             -> rewriting, page by page -> storedVersions reduced -> an old version may go
//! ```
//!
//! [`Migration`] says how far this is. It is kept in the status, to be seen and to go on from. Without it everything begins
//! anew, and so it does where the storage version may have moved there and back since: see [`StorageVersionHistory`]. Whatever else is
//! changed in the CRD, the trust of its conversion for one, leaves objects in the version in which they are stored.

mod converter;
mod history;
mod migration;
#[cfg(test)]
mod tests;

pub use converter::converter;
pub use history::StorageVersionHistory;
pub use migration::{Migration, MigrationStep, is_as_desired, is_stored_in_one_version, next, reduction};
