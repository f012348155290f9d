//! A simulated kubelet: runs pods as local processes against any API server.
//!
//! It is the scheduler too: it registers one node, binds every pending pod to it, and talks to nothing but the API.
//!
//! ```text
//! pod -> bound -> Secrets and ConfigMaps there -> address -> volumes written -> init containers -> containers
//!     -> probes -> status ... -> deletion: not ready -> preStop -> SIGTERM -> SIGKILL -> removed
//! ```
//!
//! One task runs each pod, one each of its containers. Nothing is polled but what probes ask.

mod address;
mod backoff;
mod container;
mod context;
mod environment;
mod error;
mod fields;
mod kubelet;
mod node;
mod objects;
mod options;
mod pod;
mod probe;
mod process;
mod request;
mod stand_in;
mod volume;

pub use address::{Network, ParseNetworkError};
pub use error::NodeError;
pub use kubelet::run;
pub use options::{NodeOptions, Program, log_path};
