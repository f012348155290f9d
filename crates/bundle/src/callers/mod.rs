//! Bundled objects that send requests to pods of their own bundle: ExtensionConfigs and APIServices.

mod backend;
mod caller;

pub use backend::UnservedCaller;
pub(crate) use backend::{Backend, container_with, port_number, selects_same_port};
pub(crate) use caller::Caller;
