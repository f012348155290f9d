//! Checks whether a CustomResourceDefinition can change without breaking clients or stored objects.
//!
//! ```text
//! old, new -> the CRD as a whole          \
//!          -> versions of one name               -> findings -> policy -> refused, warned of or ignored
//!          -> versions that new serves together  /
//!             (schemas property by property, each keyword by its rule)
//! objects  -> tried against the new schemas      /
//! ```
//!
//! Rules, names and messages are those of OLM v1 (`operator-controller`,
//! `rukpak/preflights/crdupgradesafety`, and its engine `sigs.k8s.io/crdify`). Differences:
//!
//! - [`UpgradeRule::ServedVersionRemoval`]: clients of a removed version fail. Only a warning, because deprecations end this way.
//! - [`UpgradeRule::MapType`]: a warning, where OLM refuses it as unhandled: published bundles change it in patch releases.
//! - `allOf`, `anyOf`, `not` and everything in them are compared as one value at their field. crdify descends into them by
//!   index, where it misses added entries, and treats tightening below `not` as tightening although it loosens the schema.
//! - [`UpgradeRule::Unhandled`] also covers subresources and selectable fields of a version, `spec.preserveUnknownFields`, the
//!   group, the kind and its plural: changing them loses fields or breaks clients.
//! - In a file without a status, the stored version is the storage version.
//! - [`UpgradeRule::StoredObjects`]: existing objects are tried, so an exception from another rule cannot harm them.
//!   Formats other than `date-time` are not checked.
//! - A removed field is reported once, not again for each field below it.
//!
//! Changes without effect are not reported: the order of sets, `1` for `1.0`, `false` for absent, keywords
//! that an API server drops, messages of validation rules and, unless an exception requests it,
//! documentation. Nor is a removed constraint (`enum`, `oneOf`), which makes nothing invalid. `pattern`,
//! `nullable`, `default` and unhandled keywords are reported in both directions, because clients may rely on
//! what they read.

mod comparison;
mod constraints;
mod crd_fields;
mod finding;
mod policy;
mod property;
mod rule;
mod schema;
mod schema_field;
#[cfg(test)]
mod tests;
mod trial;
mod versions;

pub use comparison::{Crds, compare, compare_all, compare_back, is_refused};
pub use finding::Finding;
pub use policy::{Enforcement, Exception, Policy};
pub use rule::UpgradeRule;
pub use trial::{Extent, Trial, TrialResult, versions_to_try};
