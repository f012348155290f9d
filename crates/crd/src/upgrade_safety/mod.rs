//! Whether a CustomResourceDefinition can be changed without breaking clients or stored objects.
//!
//! ```text
//! old, new -> the CRD as a whole          \
//!          -> versions of one name               -> findings -> policy -> refused, warned of or ignored
//!          -> versions that new serves together  /
//!             (schemas property by property, each keyword by its rule)
//! objects  -> tried against the new schemas      /
//! ```
//!
//! Rules, names and texts are those of OLM v1 (`operator-controller`, `rukpak/preflights/crdupgradesafety`, and its engine
//! `sigs.k8s.io/crdify`). Beyond them:
//!
//! - [`UpgradeRule::ServedVersionRemoval`]: clients of a version that goes fail. It is warned of, as it is how a deprecation ends.
//! - [`UpgradeRule::MapType`]: it is warned of, where OLM refuses it as unhandled: published bundles change it in patch releases.
//! - `allOf`, `anyOf`, `not` and everything in them are compared as one value at their field. crdify walks into them by
//!   index, where one that is added goes unseen, and where what tightens a schema below `not` loosens it in truth.
//! - [`UpgradeRule::Unhandled`] is also about subresources and selectable fields of a version, `spec.preserveUnknownFields`, the
//!   group, the kind and its plural: without them fields are lost or clients fail too.
//! - In a file, where no status says what is stored, it is the storage version.
//! - [`UpgradeRule::StoredObjects`]: objects that are there are tried, so that an exception from another rule costs none of them.
//!   Formats other than `date-time` are not looked at.
//! - A removed field is reported once, not again for each field that was below it.
//!
//! What makes no difference is not reported: the order of sets, `1` for `1.0`, `false` for nothing, keywords that an API
//! server drops, texts of validation rules and, unless an exception asks for it, documentation. Nor is a constraint that
//! goes as a whole (`enum`, `oneOf`), as nothing becomes invalid by it; `pattern`, `nullable`, `default` and what is
//! unhandled are reported in both directions, as clients may rely on what they read.

mod comparison;
mod constraints;
mod finding;
mod objects;
mod place;
mod policy;
mod property;
mod rule;
mod schema;
#[cfg(test)]
mod tests;
mod versions;
mod whole;

pub use comparison::{Crds, compare, compare_all, compare_back, is_refused};
pub use finding::Finding;
pub use objects::{Extent, Trial, Tried, versions_to_try};
pub use policy::{Enforcement, Exception, Policy};
pub use rule::UpgradeRule;
