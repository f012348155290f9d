//! Connections of whoever in the cluster can reach a port of ours: only so many, and none for long without a request.

mod serve;

#[cfg(test)]
pub(crate) use serve::CONNECTIONS;
pub(crate) use serve::{ClientAddress, serve};
