//! `windlass install --adopt-from` and `windlass adoption`: Windlass takes over existing installations, and
//! gives them back.
//!
//! ```text
//! record ─► hide from Helm ─► start copies ─► old Services use copies ─► stop injectors ─► BundleDeployment ─► ready
//!                                                                                                      │
//!       delete old callers, Services, copies, other objects, record ◄── confirm ◄──────────────────────┤
//! pause ─► callers use copies ─► restore Deployments ─► callers use Deployments ─► restore rest ◄── undo ◄┘
//! ```
//!
//! Each step reads the current state, so an interrupted command is resumed by the same command. Until the
//! adoption is confirmed, the previous servers keep serving, with the certificate that their callers trust.

mod ca;
mod command;
mod confirm;
mod issued_certificates;
mod olm;
mod records;
mod remaining_callers;
mod servers;
mod source_objects;
mod takeover;
mod undo;

pub(super) use command::Args;
pub(super) use takeover::Takeover;
