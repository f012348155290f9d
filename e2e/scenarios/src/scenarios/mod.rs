//! The scenarios, each written once and run on every kind of cluster.
//!
//! A scenario gets a test cluster of its own: a cluster with Windlass's CRDs and RBAC, a node, an operator that is not
//! started yet, and an empty bundle folder.

mod absences;
mod added_kinds;
mod admission_proof;
mod adoption;
mod arrivals;
mod asked_webhooks;
mod blocking;
mod callers;
mod catalogs;
mod cert_manager;
mod changes;
mod claims;
mod cold_start;
mod commands;
mod crash;
mod crd_upgrade;
mod discovery;
mod disruption;
mod doctor;
mod documented;
mod drift;
mod dry_run;
mod every_kind;
mod expired;
mod extension_config_policies;
mod fight;
mod foreign;
mod foreign_issuer;
mod gitops;
mod guard;
mod halves;
mod hygiene;
mod idle;
mod images;
mod injection;
mod install;
mod installation;
mod interpretation;
mod interpreters;
mod interruption;
mod kept;
mod kubectl;
mod leader;
mod leaving;
mod migration;
mod monitoring;
mod namespace;
mod operation;
mod operator_condition;
mod overridden_bundles;
mod ownership;
pub mod policies;
mod policies_at_night;
mod policies_cold_start;
mod policies_disarming;
mod policies_hostile;
mod policy_references;
mod policy_reports;
mod policy_samples;
mod power_loss;
mod refusal;
mod remote;
mod removal;
mod retention;
mod revisions;
mod rights;
mod rotation;
mod runtime_hooks;
mod schemas;
mod seat;
mod secrets;
mod self_managed;
mod server_calls;
mod service;
mod service_address;
mod service_endpoints;
mod stand_in;
mod target;
mod tenancy;
mod traces;
mod traffic;
mod ui;
mod upgrade;
mod workloads;

use std::pin::Pin;

use crate::{cluster::Disruption, test_cluster::TestCluster};

use self::{changes::BundleChange, operation::AdminOperation};

pub use self::guard::replicas::{Replica, install_guard};

/// What a scenario returns. It stays on the thread that began it.
type Outcome<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// One scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The name that selects it.
    pub name: &'static str,
    /// What it inflicts on its cluster, which must allow that.
    pub needs: &'static [Disruption],
    /// The scenario that does the same and more at once.
    pub within: Option<&'static str>,
    run: for<'a> fn(&'a TestCluster) -> Outcome<'a>,
}

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// What the scenario found wrong.
    pub async fn run(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        (self.run)(cluster).await
    }
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a row of [`SCENARIOS`] runs: as the function of its name, or as a function that several rows call.
macro_rules! run {
    ($module:ident::$name:ident) => {
        |cluster| Box::pin($module::$name(cluster))
    };
    ($module:ident::$name:ident $function:ident($argument:expr)) => {
        |cluster| Box::pin($module::$function(cluster, $argument))
    };
}

/// Declares [`SCENARIOS`] from `module::name` paths, each with the call that it is where that has another name, and with
/// what it `needs`, or which other one it is `within`.
macro_rules! scenarios {
    (@within) => { None };
    (@within $all:ident) => { Some(stringify!($all)) };
    ($($module:ident::$name:ident $(= $function:ident($argument:expr))? $(needs $disruption:ident)? $(within $all:ident)?),* $(,)?) => {
        /// Every scenario.
        pub static SCENARIOS: &[Scenario] = &[
            $(Scenario {
                name: stringify!($name),
                needs: &[$(Disruption::$disruption)?],
                within: scenarios!(@within $($all)?),
                run: run!($module::$name $($function($argument))?),
            }),*
        ];
    };
}

scenarios! {
    install::all_three_webhook_kinds_are_armed_and_serve,
    install::conversion_alone_is_armed,
    install::admission_of_one_namespace_leaves_others_alone,
    install::the_newer_bundle_takes_over_under_load,
    commands::the_command_installs_upgrades_and_removes,
    commands::an_interrupted_command_is_taken_up_by_the_next,
    commands::the_command_installs_nothing_of_a_broken_bundle,
    commands::the_command_ends_when_the_operator_refuses,
    commands::programs_follow_commands_by_their_events,
    doctor::the_doctor_finds_what_would_go_wrong,
    documented::every_documented_command_runs,
    documented::every_documented_object_is_taken needs AdmissionPolicies,
    documented::documented_policies_refuse_what_they_say needs Impersonation,
    changes::another_target_port_costs_no_call = is_carried_through(BundleChange::TargetPort)
        within all_changes_together_cost_no_call,
    changes::another_service_port_costs_no_call = is_carried_through(BundleChange::ServicePorts)
        within all_changes_together_cost_no_call,
    changes::another_service_port_of_the_conversion_costs_no_call = is_carried_through(BundleChange::ConversionPort)
        within all_changes_together_cost_no_call,
    changes::another_selector_costs_no_call = is_carried_through(BundleChange::Selector),
    changes::another_name_of_the_deployment_costs_no_call = is_carried_through(BundleChange::DeploymentName)
        within all_changes_together_cost_no_call,
    changes::other_names_of_webhooks_cost_no_call = is_carried_through(BundleChange::WebhookNames)
        within all_changes_together_cost_no_call,
    changes::other_paths_of_webhooks_cost_no_call = is_carried_through(BundleChange::WebhookPaths)
        within all_changes_together_cost_no_call,
    changes::an_upgrade_of_one_replica_costs_no_call = is_carried_through(BundleChange::OneReplica)
        within all_changes_together_cost_no_call,
    changes::an_upgrade_by_recreation_costs_no_call = is_carried_through(BundleChange::Recreate)
        within all_changes_together_cost_no_call,
    changes::an_upgrade_that_may_end_every_pod_costs_no_call = is_carried_through(BundleChange::MaxUnavailable)
        within all_changes_together_cost_no_call,
    changes::an_upgrade_of_slow_pods_costs_no_call = is_carried_through(BundleChange::SlowPods)
        within all_changes_together_cost_no_call,
    changes::another_network_policy_costs_no_call = is_carried_through(BundleChange::NetworkPolicy)
        within all_changes_together_cost_no_call,
    changes::another_config_map_costs_no_call = is_carried_through(BundleChange::ConfigMap)
        within all_changes_together_cost_no_call,
    changes::a_role_that_allows_less_costs_no_call = is_carried_through(BundleChange::Role)
        within all_changes_together_cost_no_call,
    changes::webhooks_that_move_to_another_deployment_cost_no_call = is_carried_through(BundleChange::Split),
    changes::what_serves_no_webhook_changes_beside = is_carried_through(BundleChange::Companion),
    changes::all_changes_together_cost_no_call = is_carried_through(BundleChange::Everything),
    changes::a_source_that_changes_midway_costs_no_call,
    changes::a_source_that_goes_back_to_another_selector_costs_no_call,
    changes::what_an_admin_added_to_a_webhook_outlives_a_rename,
    changes::a_restart_midway_costs_no_call,
    changes::bundles_whose_pods_look_alike_answer_only_their_own_calls,
    changes::a_server_of_controller_runtime_is_upgraded_again_and_again needs ControllerRuntime,
    upgrade::a_broken_revision_is_stopped_at_its_canary,
    admission_proof::a_revision_that_does_not_answer_admission_is_never_armed,
    admission_proof::a_bundle_without_conversion_is_tried_out_too,
    admission_proof::a_lossy_conversion_is_allowed_by_an_exception_and_is_then_no_news,
    admission_proof::an_invented_object_that_does_not_convert_keeps_nothing_disarmed,
    seat::the_api_server_is_asked_once_for_each_server,
    seat::a_question_that_a_crash_leaves_behind_goes,
    seat::what_only_the_operator_reaches_is_not_armed,
    seat::what_only_the_api_server_reaches_is_not_armed,
    upgrade::a_canary_that_cannot_start_says_why,
    upgrade::removal_during_a_canary_leaves_nothing_behind,
    upgrade::without_a_canary_a_broken_revision_can_be_set_back,
    upgrade::what_a_bundle_brings_is_served_before_its_canary_but_not_what_that_converts,
    interruption::pods_on_a_port_of_their_node_give_way_to_others_only_when_allowed,
    interruption::what_is_overridden_and_what_is_not_asked_is_said,
    upgrade::a_downgrade_happens_only_when_asked_for,
    upgrade::a_downgrade_never_loses_stored_objects,
    operator_condition::an_operator_that_cannot_be_upgraded_is_not_until_it_can_or_is_overridden,
    interpretation::a_bundle_is_available_when_its_custom_resource_is_healthy,
    asked_webhooks::a_webhook_interprets_custom_resources_while_it_is_slow_down_and_back,
    asked_webhooks::a_bundle_mends_an_interpreter_of_its_own_objects,
    retention::what_an_autoscaler_sets_is_kept_across_upgrades,
    retention::what_is_injected_into_pods_is_kept_across_an_upgrade,
    kept::the_installed_revision_is_kept_while_the_next_is_refused,
    kept::the_installed_revision_is_kept_while_the_next_is_stuck,
    kept::the_installed_revision_is_kept_beside_what_began_and_is_refused_now,
    revisions::a_config_map_of_somebody_else_is_not_overwritten_by_a_record,
    revisions::a_source_that_is_gone_takes_nothing_along,
    revisions::a_pinned_source_gives_nothing_else,
    revisions::the_command_goes_back_to_an_earlier_revision,
    catalogs::the_command_follows_the_path_of_a_catalog,
    catalogs::a_channel_of_a_catalog_is_followed_bundle_by_bundle,
    catalogs::a_bundle_of_a_catalog_waits_for_its_approval,
    images::a_bundle_in_an_image_needs_no_registry_once_it_is_recorded,
    images::an_image_that_cannot_be_pulled_leaves_what_is_installed,
    images::the_command_installs_from_an_image_and_from_a_folder,
    migration::stored_objects_follow_the_storage_version,
    migration::a_version_is_dropped_only_when_nothing_is_stored_in_it,
    migration::objects_that_cannot_be_rewritten_are_named,
    migration::a_ca_rotation_does_not_throw_a_migration_back,
    refusal::a_broken_bundle_is_refused_before_anything_is_written,
    refusal::a_foreign_object_is_not_adopted,
    refusal::an_install_mode_that_is_not_supported_is_refused,
    crd_upgrade::an_unsafe_change_of_a_definition_is_refused_until_it_is_allowed,
    crd_upgrade::an_object_that_a_new_schema_would_break_is_named_until_it_is_mended,
    crd_upgrade::objects_that_cannot_be_read_are_not_taken_for_good,
    crd_upgrade::what_a_failed_upgrade_added_goes_again_unless_an_object_uses_it,
    schemas::bundle_deployments_that_make_no_sense_are_refused,
    schemas::serving_certificates_that_make_no_sense_are_refused,
    rotation::the_leaf_rotates_under_load,
    rotation::the_ca_rotates_under_load,
    rotation::a_server_that_never_reloads_is_restarted_without_a_failed_call,
    workloads::a_server_that_never_reloads_is_restarted_whatever_keeps_it_running needs Controllers,
    rotation::a_target_that_refuses_is_named_and_the_others_go_on,
    every_kind::a_definition_goes_through_everything = goes_through_everything("CustomResourceDefinition"),
    every_kind::a_validating_webhook_goes_through_everything = goes_through_everything("ValidatingWebhookConfiguration"),
    every_kind::a_mutating_webhook_goes_through_everything = goes_through_everything("MutatingWebhookConfiguration"),
    every_kind::an_api_service_goes_through_everything = goes_through_everything("APIService"),
    every_kind::an_extension_config_goes_through_everything = goes_through_everything("ExtensionConfig"),
    every_kind::an_interpreter_goes_through_everything = goes_through_everything("ResourceInterpreterWebhookConfiguration"),
    every_kind::a_config_map_goes_through_everything = goes_through_everything("ConfigMap"),
    drift::every_kind_of_target_is_repaired,
    drift::what_others_write_at_the_same_moment_is_kept,
    drift::a_removed_configuration_comes_back,
    cold_start::a_cold_start_with_every_optional_kind_broken,
    fight::an_older_trust_bundle_costs_no_call,
    fight::an_empty_trust_bundle_costs_calls_only_until_it_is_repaired,
    fight::a_strangers_trust_bundle_costs_calls_only_until_it_is_repaired,
    fight::an_actor_that_answers_every_repair_is_slowed_down,
    gitops::a_definition_applied_without_a_conversion_costs_no_call,
    gitops::another_conversion_costs_calls_only_until_it_is_repaired,
    gitops::the_guard_keeps_the_conversion_from_every_tool,
    secrets::a_deleted_serving_secret_is_issued_again,
    secrets::a_deleted_ca_secret_is_made_again,
    secrets::a_key_that_is_not_the_certificates_is_replaced,
    secrets::a_garbage_trust_bundle_is_put_right_and_reaches_no_target,
    secrets::a_damaged_ca_secret_is_replaced,
    secrets::an_expired_ca_at_start_is_replaced,
    service::a_certificate_follows_its_service,
    service::endpoints_that_do_not_serve_are_named,
    service::what_cannot_be_seen_keeps_its_ca_trusted,
    service::endpoints_that_kubernetes_forgets_are_refreshed needs Faults,
    crash::an_install_resumes_from_every_write = resumes(AdminOperation::Install),
    crash::an_upgrade_resumes_from_every_write = resumes(AdminOperation::Upgrade),
    changes::an_upgrade_that_changes_everything_resumes_from_every_write,
    crash::a_storage_migration_resumes_from_every_write = resumes(AdminOperation::Migration),
    crash::a_leaf_rotation_resumes_from_every_write = resumes(AdminOperation::LeafRotation),
    crash::a_ca_rotation_resumes_from_every_write = resumes(AdminOperation::CaRotation),
    crash::a_removal_resumes_from_every_write = resumes(AdminOperation::Removal),
    crash::a_removal_with_definitions_resumes_from_every_write = resumes(AdminOperation::RemovalWithCrds),
    crash::a_removal_after_its_namespace_resumes_from_every_write = resumes(AdminOperation::RemovalAfterNamespace),
    disruption::restarts_of_the_api_server_lose_nothing = survives(Disruption::Restart) needs Restart,
    disruption::storage_that_hangs_loses_nothing = survives(Disruption::Pause) needs Pause,
    disruption::errors_at_random_and_cut_watches_lose_nothing = survives(Disruption::Faults) needs Faults,
    power_loss::an_api_server_that_loses_power_keeps_no_target_broken,
    hygiene::no_private_key_is_anywhere_but_in_its_secret,
    monitoring::what_is_alerted_on_is_measured,
    traces::an_install_and_a_rotation_are_one_trace_each_whoever_dies_meanwhile,
    traces::a_collector_that_hangs_holds_nothing_up,
    guard::every_forbidden_write_is_refused_by_every_replica,
    guard::the_guards_own_certificate_rotates_without_a_gap,
    guard::where_nobody_guards_drift_is_undone_and_its_author_named,
    guard::kubectl_shows_what_the_guard_says,
    claims::the_second_claim_is_refused_and_takes_over_when_the_first_is_gone,
    claims::the_older_claim_holds_whatever_the_operator_sees_first,
    claims::a_kind_is_claimed_under_whatever_name,
    claims::bundles_that_may_not_convert_are_refused,
    adoption::an_api_of_others_is_refused_with_their_name,
    adoption::what_is_to_be_adopted_is_taken_over_with_its_objects,
    adoption::what_a_bundle_deployment_has_is_adopted_by_no_other,
    arrivals::what_would_interrupt_calls_is_not_adopted_by_hand,
    arrivals::what_cert_manager_serves_is_adopted_and_given_back_without_a_failed_call needs Cainjector,
    arrivals::what_service_ca_serves_is_adopted_and_given_back_without_a_failed_call,
    arrivals::a_helm_release_is_adopted_and_given_back_without_a_failed_call needs Helm,
    arrivals::what_olm_runs_is_adopted_without_a_failed_call needs Controllers,
    absences::what_has_no_place_yet_is_left_out_and_comes_later,
    absences::a_bundle_waits_for_what_it_requires,
    self_managed::a_conversion_of_the_operators_own_is_left_alone,
    ownership::copies_of_installed_objects_are_nobodys,
    ownership::a_lost_label_is_put_back,
    ownership::what_a_bundle_deployment_that_is_gone_left_behind_is_had,
    ownership::replicas_are_left_to_whoever_scales,
    ownership::a_kind_in_another_version_comes_once_and_goes,
    ownership::who_answers_every_repair_of_an_object_is_named_and_slowed_down,
    injection::who_applies_a_definition_may_drop_its_conversion,
    added_kinds::a_config_map_carries_the_trust_bundle_for_pods_to_mount,
    added_kinds::objects_of_a_kind_that_was_added_ask_as_webhooks_do,
    foreign_issuer::a_foreign_ca_is_replaced_in_one_step_without_a_failed_call,
    foreign_issuer::webhooks_of_one_configuration_trust_whom_each_asks_for,
    foreign_issuer::a_target_may_ask_for_the_ca_of_the_api_server,
    stand_in::what_cert_manager_is_asked_for_is_injected,
    stand_in::what_service_ca_is_asked_for_is_issued_and_rotated,
    stand_in::what_cluster_api_is_asked_for_is_injected,
    stand_in::an_injector_that_is_at_work_is_left_alone,
    stand_in::what_an_injector_has_left_behind_is_trusted_further,
    remote::targets_of_a_second_cluster_are_cared_for_as_those_of_the_first,
    remote::a_rotation_waits_for_targets_of_a_second_cluster,
    remote::a_kubeconfig_that_cannot_be_used_is_named_and_holds_nothing_up_here,
    discovery::servers_are_asked_what_they_answer,
    discovery::dead_servers_are_in_nobodys_way,
    discovery::who_is_paused_or_managed_elsewhere_is_not_asked,
    discovery::an_older_version_is_discovered_until_a_newer_one_is_served,
    discovery::a_server_behind_a_service_is_discovered_while_its_ca_rotates,
    runtime_hooks::an_extension_is_called_while_it_rotates,
    interpreters::an_interpreter_is_called_while_its_certificates_rotate,
    runtime_hooks::an_extension_is_called_while_its_slow_replicas_die_amid_rotations,
    policies::a_policy_that_always_fails_is_taken_out_until_it_succeeds,
    policies_disarming::policies_are_disarmed_before_what_answers_for_them_goes,
    policies::no_write_fails_while_what_serves_policies_restarts_and_rotates,
    policies_at_night::no_write_fails_while_policies_come_and_go_in_numbers,
    policies_hostile::hostile_policies_hold_up_no_writes_of_others_and_take_no_memory_without_end,
    policies_cold_start::a_cluster_comes_up_under_policies_for_everything_while_nobody_answers needs Restart,
    policy_samples::every_sample_policy_does_what_its_cases_say,
    policies::what_is_written_is_overridden_by_policies_and_no_longer_than_they_are_there,
    overridden_bundles::a_bundle_comes_from_a_mirror_although_nobody_serves_policies,
    overridden_bundles::a_policy_changes_and_goes_without_a_failed_call,
    overridden_bundles::who_serves_policies_finds_bundles_as_they_are_to_be,
    policy_references::policies_read_what_they_refer_to_and_wait_for_no_server_for_long,
    policy_reports::what_policies_audit_is_told_by_reports_as_long_as_it_is_so,
    extension_config_policies::extension_configs_that_nobody_could_call_are_refused needs AdmissionPolicies,
    extension_config_policies::policies_of_extension_configs_are_off_while_webhooks_do_the_same needs AdmissionPolicies,
    cert_manager::who_asks_cert_manager_too_has_one_writer needs Cainjector,
    cert_manager::cert_manager_and_windlass_each_answer_who_asks_them needs Cainjector,
    cert_manager::windlass_answers_for_cert_manager_only_while_that_is_gone needs Cainjector,
    callers::an_extension_config_of_a_bundle_is_armed_after_proof_and_goes_first,
    callers::what_others_have_an_operator_validate_is_answered_through_its_upgrades,
    callers::an_api_service_of_a_bundle_is_armed_after_proof_and_nobody_elses_is_taken,
    ui::the_page_is_shown_to_whom_the_api_server_lets_see_it needs Controllers,
    installation::windlass_itself_comes_changes_and_goes_without_a_failed_call needs Controllers,
    halves::certificates_and_bundles_run_in_processes_of_their_own,
    rights::every_kind_that_a_bundle_may_bring_along_comes_changes_and_goes,
    rights::nothing_is_granted_that_the_operator_may_not_grant,
    rights::what_is_armed_is_said_although_the_question_may_not_be_withdrawn,
    tenancy::a_bundle_gets_no_rights_that_its_account_lacks needs Impersonation,
    kubectl::get_shows_what_the_objects_say,
    kubectl::describe_finds_the_events,
    removal::webhooks_go_before_their_servers,
    removal::conversion_that_stored_objects_need_is_kept,
    removal::stored_old_versions_are_rewritten_before_conversion_ends,
    removal::definitions_go_only_when_asked_for_and_with_every_object,
    removal::a_deletion_while_the_operator_is_down_waits_for_it,
    blocking::a_dead_webhook_does_not_keep_its_own_server_from_coming_back,
    blocking::what_is_called_is_put_right_although_a_replica_is_missing,
    leaving::a_removal_that_could_not_end_takes_nothing_away_until_it_may_rewrite,
    leaving::an_empty_definition_that_stays_serves_one_version,
    leaving::what_is_paused_is_left_as_it_is_but_for_its_conversion,
    dry_run::what_the_api_server_would_refuse_is_refused_before_anything_is_written,
    dry_run::the_command_shows_what_an_install_would_do_and_writes_nothing,
    namespace::a_namespace_that_is_deleted_first_goes_and_no_object_outside_is_lost,
    namespace::what_is_deleted_while_the_operator_is_down_goes_when_it_is_back,
    leader::the_next_leader_finishes_the_rotation_of_one_that_was_killed,
    leader::a_paused_leader_writes_nothing_when_it_goes_on,
    leader::a_target_is_repaired_while_nobody_leads,
    leader::a_leader_that_is_asked_to_end_hands_over_at_once,
    leader::two_leaders_rotate_without_a_failed_call,
    leader::leases_that_make_no_sense_are_refused,
    idle::nothing_is_written_when_nothing_changes,
    idle::nothing_is_written_when_an_upgrade_is_done,
}
