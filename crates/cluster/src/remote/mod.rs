//! A second cluster, in which Windlass only manages targets: its kubeconfig and its connection.

mod connection;
mod kubeconfig;
#[cfg(test)]
mod tests;

pub use connection::{RemoteCluster, RemoteConnection};
pub use kubeconfig::{InvalidKubeconfig, KEYS, read_kubeconfig};
