//! Windlass adopts installs of other tools while their webhooks are called.

mod adopt_field;
mod cert_manager;
mod foreign_install;
mod from_olm;
mod helm;
mod round_trip;
mod service_ca;
mod steps;

pub(super) use self::{
    adopt_field::an_adoption_that_would_interrupt_calls_is_rejected,
    cert_manager::an_install_with_cert_manager_is_adopted_and_given_back_without_a_failed_call,
    from_olm::an_operator_of_olm_is_adopted_without_a_failed_call,
    helm::a_helm_release_is_adopted_and_given_back_without_a_failed_call,
    service_ca::an_install_with_service_ca_is_adopted_and_given_back_without_a_failed_call,
};
