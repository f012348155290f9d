//! Windlass adopts installs of other tools while their webhooks are called.

mod by_hand;
mod cert_manager;
mod from_olm;
mod helm;
mod service_ca;
mod steps;
mod theirs;
mod there_and_back;

pub(super) use self::{
    by_hand::what_would_interrupt_calls_is_not_adopted_by_hand,
    cert_manager::what_cert_manager_serves_is_adopted_and_given_back_without_a_failed_call,
    from_olm::what_olm_runs_is_adopted_without_a_failed_call,
    helm::a_helm_release_is_adopted_and_given_back_without_a_failed_call,
    service_ca::what_service_ca_serves_is_adopted_and_given_back_without_a_failed_call,
};
