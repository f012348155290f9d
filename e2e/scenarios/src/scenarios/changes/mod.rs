//! Upgrades and downgrades under load, between bundles that differ in ways that can interrupt traffic.

mod additions;
mod allowances;
mod bursts;
mod change;
mod controller_runtime;
mod interrupted_upgrades;
mod outcome;
mod round_trip;
mod shared_labels;
mod variant;

pub(super) use self::{
    additions::an_admins_match_condition_survives_a_renamed_deployment,
    change::BundleChange,
    controller_runtime::a_controller_runtime_server_is_upgraded_repeatedly,
    interrupted_upgrades::{
        a_selector_is_reverted_during_an_upgrade_without_a_failed_call,
        a_source_changes_during_an_upgrade_without_a_failed_call,
        pods_restart_during_an_upgrade_without_a_failed_call,
    },
    round_trip::{an_upgrade_that_changes_everything_resumes_from_every_write, upgrades_and_downgrades},
    shared_labels::bundles_with_equal_pod_labels_receive_only_their_own_calls,
};
