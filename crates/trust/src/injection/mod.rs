//! Writes trust bundles into targets: parses what a target requests, finds the fields of its kind, and
//! computes the smallest patch.
//!
//! A patch is never a server-side apply: applying `caBundle` would make Windlass co-owner of the list entry,
//! and the target's owner could no longer remove that entry (kubernetes#128102).

mod foreign_request;
mod holder;
mod injection_plan;
mod injection_scope;
mod kinds;
mod managed_elsewhere;
mod place;
mod request;
#[cfg(test)]
mod tests;
mod withdrawal;
mod writer;

pub use holder::{CaBundle, CalledServer, Holder};
pub use injection_plan::{Injection, InjectionError, differs_in_trust_only};
pub use injection_scope::InjectionScope;
pub use kinds::{BundleReader, CONFIG_MAP_KEY, KINDS, TargetKind, TargetKinds};
pub use managed_elsewhere::ManagedElsewhere;
pub use place::{CaBundlePlace, Encoding, InvalidPath, Surroundings};
pub use request::{CaRequests, CaSource, CaSources, Consent, InvalidRequest};
pub use withdrawal::{has_injected_bundle, withdrawal};
pub use writer::{last_injector, last_writer, needs_release, release, relevant_fields};
