//! The shell around Kubernetes: watches that feed an index, apply and patch execution, leader election, events, the
//! clock.

mod api_server_clock;
pub mod apply;
mod ask;
mod change;
pub mod clock;
mod connect;
mod cut;
mod definitions;
mod discovery;
mod dry_run;
pub mod endpoints;
mod event;
pub mod events;
mod follow;
mod identity;
pub mod index;
mod indexed_object;
pub mod keys;
pub mod kind;
mod lanes;
pub mod lease;
pub mod listing;
pub mod prober;
mod relation;
mod request_error;
pub mod requests;
pub mod rewriting;
mod shelf;
mod slim;
pub mod telemetry;
pub mod watch;
mod watched_object;
pub mod watches;
pub mod worker;
mod write_pace;

pub use api_server_clock::ApiServerClock;
pub use change::{Change, ChangedObject};
pub use clock::{Clock, SystemClock};
pub use connect::client;
pub use index::Index;
pub use indexed_object::IndexedObject;
pub use kind::{Kind, kinds};
pub use requests::{Cluster, RequestError};
pub use shelf::SeenObjects;
pub use write_pace::{WritePace, WriteTurn};
