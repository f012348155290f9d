//! Targets in a second cluster, as Karmada's API server has them: their webhook servers and certificates are in the first. The
//! second is a sandbox, whatever the first is.

mod kubeconfig;
mod rotation;
mod second_cluster;
mod targets;

pub(super) use self::{
    kubeconfig::a_kubeconfig_that_cannot_be_used_is_named_and_holds_nothing_up_here,
    rotation::a_rotation_waits_for_targets_of_a_second_cluster,
    targets::targets_of_a_second_cluster_are_cared_for_as_those_of_the_first,
};
