//! `windlass install --adopt-from` and `windlass adoption`: installs of others come under Windlass, and go back.
//!
//! ```text
//! record ─► helm: hidden ─► copies serve ─► old Services lead to them ─► injectors let go ─► BundleDeployment ─► ready
//!                                                                                                      │
//!       old callers, Services, copies, rest, record gone ◄── confirm ◄─────────────────────────────────┤
//! paused ─► callers go back to the copies ─► Deployments as they were ─► callers to them ─► rest ◄── undo ◄┘
//! ```
//!
//! Each step looks at what is there, so that any of these writes may be the last one: the same command goes on from there.
//! Until it is confirmed, what the old callers call keeps serving, under the certificate that they trust.

mod adopting;
mod ca;
mod command;
mod confirm;
mod issued;
mod left_over;
mod olm;
mod records;
mod servers;
mod source_objects;
mod undo;

pub(super) use adopting::Adopting;
pub(super) use command::Args;
