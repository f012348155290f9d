//! The scenarios, each written once and run on every kind of cluster.
//!
//! A scenario gets a bed of its own: a cluster with Windlass's CRDs and RBAC, a node, an operator that is not
//! started yet, and an empty bundle folder.

mod claims;
mod crash;
mod drift;
mod idle;
mod install;
mod refusal;
mod removal;
mod rotation;
mod schemas;
mod secrets;
mod traffic;
mod upgrade;

use std::pin::Pin;

use crate::bed::Bed;

/// What a scenario returns. It stays on the thread that began it.
type Outcome<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// One scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The name that selects it.
    pub name: &'static str,
    run: for<'a> fn(&'a Bed) -> Outcome<'a>,
}

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// What the scenario found wrong.
    pub async fn run(&self, bed: &Bed) -> anyhow::Result<()> {
        (self.run)(bed).await
    }
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares [`SCENARIOS`] from `module::function` paths.
macro_rules! scenarios {
    ($($module:ident::$function:ident),* $(,)?) => {
        /// Every scenario.
        pub const SCENARIOS: &[Scenario] = &[
            $(Scenario { name: stringify!($function), run: |bed| Box::pin($module::$function(bed)) }),*
        ];
    };
}

scenarios! {
    install::all_three_webhook_kinds_are_armed_and_serve,
    install::conversion_alone_is_armed,
    install::admission_of_one_namespace_leaves_others_alone,
    install::the_newer_bundle_takes_over_under_load,
    upgrade::a_broken_revision_is_stopped_at_its_canary,
    upgrade::a_canary_that_cannot_start_says_why,
    upgrade::removal_during_a_canary_leaves_nothing_behind,
    upgrade::without_a_canary_a_broken_revision_can_be_set_back,
    upgrade::a_downgrade_happens_only_when_asked_for,
    upgrade::a_downgrade_never_loses_stored_objects,
    refusal::a_broken_bundle_is_refused_before_anything_is_written,
    refusal::a_foreign_object_is_not_adopted,
    refusal::an_install_mode_that_is_not_supported_is_refused,
    schemas::bundle_deployments_that_make_no_sense_are_refused,
    schemas::serving_certificates_that_make_no_sense_are_refused,
    rotation::the_leaf_rotates_under_load,
    rotation::the_ca_rotates_under_load,
    rotation::a_server_that_never_reloads_is_restarted_without_a_failed_call,
    drift::every_kind_of_target_is_repaired,
    drift::a_removed_configuration_comes_back,
    secrets::a_deleted_serving_secret_is_issued_again,
    secrets::a_deleted_ca_secret_is_made_again,
    crash::an_install_resumes_from_every_write,
    crash::a_ca_rotation_resumes_from_every_write,
    claims::the_second_claim_is_refused_and_takes_over_when_the_first_is_gone,
    removal::webhooks_go_before_their_servers,
    removal::conversion_that_stored_objects_need_is_kept,
    idle::nothing_is_written_when_nothing_changes,
}
