//! The shell around Kubernetes: watches that feed an index, apply and patch execution, leader election, events, the
//! clock.

pub mod apply;
pub mod clock;
mod discovery;
mod dry_run;
pub mod endpoints;
pub mod events;
mod identity;
pub mod index;
pub mod keys;
pub mod kind;
pub mod lease;
pub mod listing;
pub mod prober;
pub mod requests;
pub mod rewriting;
mod slim;
pub mod telemetry;
pub mod watch;
pub mod watches;
pub mod worker;

pub use clock::{Clock, SystemClock};
pub use index::{Change, Index};
pub use kind::{Kind, kinds};
pub use requests::{Cluster, RequestError};
