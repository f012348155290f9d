//! Bringing trust bundles into targets: who asks for which one, where each kind keeps it, and the smallest patch that
//! puts it there.
//!
//! A patch is never an apply: an applied `caBundle` would make us co-owner of the entry it is in, and the target's owner
//! could not remove that entry any more (kubernetes#128102).

mod holder;
mod injection_plan;
mod kinds;
mod managed_elsewhere;
mod place;
mod reach;
mod request;
mod stand_in;
#[cfg(test)]
mod tests;
mod withdrawal;
mod writer;

pub use holder::{CaBundle, CalledServer, Holder};
pub use injection_plan::{Injection, InjectionError, differs_in_trust_only};
pub use kinds::{BundleReader, CONFIG_MAP_KEY, KINDS, TargetKind, TargetKinds};
pub use managed_elsewhere::ManagedElsewhere;
pub use place::{CaBundlePlace, Encoding, InvalidPath, Surroundings};
pub use reach::Reach;
pub use request::{CaRequests, CaSource, CaSources, Consent, InvalidRequest};
pub use withdrawal::{is_left_behind, withdrawal};
pub use writer::{last_injector, last_writer, needs_release, release, relevant_fields};
