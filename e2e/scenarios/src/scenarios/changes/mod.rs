//! Upgrades to a bundle that differs from the one before in what traffic hangs on, and back again, under load.

mod additions;
mod allowances;
mod bursts;
mod change;
mod controller_runtime;
mod midway;
mod neighbours;
mod outcome;
mod there_and_back;
mod variant;

pub(super) use self::{
    additions::what_an_admin_added_to_a_webhook_outlives_a_rename,
    change::BundleChange,
    controller_runtime::a_server_of_controller_runtime_is_upgraded_again_and_again,
    midway::{
        a_restart_midway_costs_no_call, a_source_that_changes_midway_costs_no_call,
        a_source_that_goes_back_to_another_selector_costs_no_call,
    },
    neighbours::bundles_whose_pods_look_alike_answer_only_their_own_calls,
    there_and_back::{an_upgrade_that_changes_everything_resumes_from_every_write, is_carried_through},
};
