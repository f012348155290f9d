//! A second cluster, of which only targets are looked at: how its kubeconfig is read, and who is connected to it.

mod connection;
mod kubeconfig;
#[cfg(test)]
mod tests;

pub use connection::{RemoteCluster, RemoteConnection};
pub use kubeconfig::{InvalidKubeconfig, KEYS, read_kubeconfig};
