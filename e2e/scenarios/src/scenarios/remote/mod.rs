//! Targets in a second cluster, such as Karmada's API server. Their webhook servers and certificates are in
//! the first cluster. The second cluster is always a sandbox.

mod kubeconfig;
mod rotation;
mod second_cluster;
mod targets;

pub(super) use self::{
    kubeconfig::an_unusable_kubeconfig_is_named_and_delays_no_local_target,
    rotation::a_rotation_waits_for_targets_of_a_second_cluster,
    targets::targets_of_a_second_cluster_are_managed_like_local_ones,
};
