//! What a bundle brings along that sends traffic to its own pods: ExtensionConfigs and APIServices, and where each leads.

mod backend;
mod caller;

pub use backend::Unserved;
pub(crate) use backend::{Backend, container_with, selects_same_port, port_number};
pub(crate) use caller::Caller;
