//! What override policies make of the objects of an install.
//!
//! ```text
//! rendered objects + policies -> decide -> ObjectOverrides -> settings of the revision -> apply -> Plan
//! ```
//!
//! Policies are asked about each object as it would be created, whatever is there: the same bundle, settings and policies give the
//! same overrides at any time. They are settings of a revision, so that other overrides are another revision, with everything that
//! comes with one, and a revision is kept as it was installed, whatever has become of its policies.

mod decision;
mod guarded;
mod object_override;
#[cfg(test)]
mod tests;

pub use self::{
    decision::{OverrideDecision, OverrideRefusal, decide, namespace_as_seen},
    object_override::{ObjectOverride, OutdatedOverride, apply},
};
