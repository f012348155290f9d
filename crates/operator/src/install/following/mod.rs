//! Which bundle of a catalog comes next, without IO.
//!
//! ```text
//! path from the installed bundle ─► its first bundle ─► approved? ─► is the installed one wholly through? ─► it is what is wanted
//! a bundle that has begun ─────────► is wanted while it goes on by itself, whatever the catalog says meanwhile
//! ```

mod approval;
mod next_bundle;
mod way;

pub use approval::BundleApproval;
pub use next_bundle::{BegunBundle, FollowObservation, NextBundle, Staying};
pub use way::{approval_command, way};
