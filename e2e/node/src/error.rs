//! Why a node cannot run.

use std::{io, path::PathBuf};

use crate::address::Network;

/// Why a node cannot run.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its folder cannot be made.
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Its addresses are not local.
    #[error("cannot use the addresses {network} on this machine: {source}")]
    Addresses {
        /// The network that was asked for.
        network: Network,
        /// What failed.
        source: io::Error,
    },
    /// The thread that starts processes cannot be started.
    #[error("cannot start the thread that starts processes: {0}")]
    Spawner(io::Error),
}
