//! A test cluster: a cluster with Windlass's CRDs and RBAC, a node, and everything that the operator needs.

mod bundles;
mod cluster;
mod evidence;
mod manifests;
mod options;

pub use self::cluster::TestCluster;
pub use self::options::{TestClusterOptions, Waits};
pub(crate) use self::{
    bundles::copy,
    manifests::{apply, collection_of, path_of},
    options::ready_after,
};
