//! The scenarios, each written once and run where it proves most.
//!
//! A scenario gets a test cluster of its own: a cluster with Windlass's CRDs and RBAC, a node, an operator that is not
//! started yet, and an empty bundle folder.

mod added_kinds;
mod admission_proof;
mod adopted_installs;
mod adoption;
mod api_server_probe;
mod blocked_removals;
mod blocking;
mod callers;
mod catalogs;
mod cert_manager;
mod changes;
mod claims;
mod cold_start;
mod commands;
mod contest;
mod crash;
mod crd_upgrade;
mod discovery;
mod disruption;
mod doctor;
mod documentation;
mod drift;
mod dry_run;
mod every_kind;
mod everyday;
mod expired;
mod extension_config_policies;
mod foreign;
mod foreign_issuer;
mod gitops;
mod guard;
mod idle;
mod images;
mod injection;
mod install;
mod installation;
mod installed_revision;
mod interpretation;
mod interpreter_outages;
mod interpreters;
mod interruption;
mod kubectl;
mod leader;
mod migration;
mod missing_kinds;
mod monitoring;
mod namespace;
mod network_policy;
mod node_faults;
mod node_images;
mod operation;
mod operator_condition;
mod overridden_bundles;
mod ownership;
pub mod policies;
mod policies_cold_start;
mod policies_disarming;
mod policies_hostile;
mod policy_churn;
mod policy_references;
mod policy_reports;
mod policy_samples;
mod power_loss;
mod private_keys;
mod refusal;
mod remote;
mod removal;
mod retention;
mod revisions;
mod rights;
mod rotation;
mod runtime_hooks;
mod schemas;
mod secrets;
mod self_managed;
mod server_calls;
mod service;
mod service_address;
mod service_endpoints;
mod shipped;
mod split_processes;
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

use self::{
    changes::BundleChange, gitops::Engine, node_faults::NodeFault, operation::AdminOperation,
    shipped::Package,
};

pub use self::guard::replicas::{Replica, install_guard};

/// The future of a scenario, which stays on the thread that started it.
type Outcome<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// Where scenarios run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestBed {
    /// The sandbox: what Windlass itself rejects, messages, catalogs and injected faults.
    Sandbox,
    /// A real API server with a simulated node: what depends on its rules, but not on pods.
    ApiServer,
    /// A cluster with real nodes: what depends on pods, probes, mounts, Services, images and nodes.
    Cluster,
}

/// One scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The name, which selects the scenario.
    pub name: &'static str,
    /// Where the scenario proves most; at most two beds.
    pub beds: &'static [TestBed],
    /// Disruptions of the cluster that the scenario causes; the cluster must support them.
    pub needs: &'static [Disruption],
    /// A scenario that includes this one.
    pub within: Option<&'static str>,
    run: for<'a> fn(&'a TestCluster) -> Outcome<'a>,
}

impl Scenario {
    /// Runs the scenario.
    ///
    /// # Errors
    ///
    /// If the scenario fails.
    pub async fn run(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        (self.run)(cluster).await
    }
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Calls the function with the name of a scenario, or a function that several scenarios share.
macro_rules! run {
    ($module:ident::$name:ident) => {
        |cluster| Box::pin($module::$name(cluster))
    };
    ($module:ident::$name:ident $function:ident($argument:expr)) => {
        |cluster| Box::pin($module::$function(cluster, $argument))
    };
}

/// Declares [`SCENARIOS`] from `module::name` paths below the beds on which they run: `= call` if the function has another
/// name, `needs` for disruptions, and `within` for a scenario that includes it.
macro_rules! scenarios {
    (@within) => { None };
    (@within $all:ident) => { Some(stringify!($all)) };
    ($($beds:tt {
        $($module:ident::$name:ident $(= $function:ident($argument:expr))? $(needs $($disruption:ident)&+)? $(within $all:ident)?),* $(,)?
    })*) => {
        /// Every scenario.
        pub static SCENARIOS: &[Scenario] = {
            use TestBed::{ApiServer, Cluster, Sandbox};
            &[
                $($(Scenario {
                    name: stringify!($name),
                    beds: &$beds,
                    needs: &[$($(Disruption::$disruption),+)?],
                    within: scenarios!(@within $($all)?),
                    run: run!($module::$name $($function($argument))?),
                },)*)*
            ]
        };
    };
}

scenarios! {
    [Sandbox] {
        install::a_bundle_with_only_a_conversion_is_armed,
        commands::the_command_installs_upgrades_and_uninstalls,
        commands::a_repeated_command_completes_an_interrupted_one,
        commands::the_command_rejects_an_invalid_bundle,
        commands::the_command_fails_when_the_operator_rejects_the_bundle,
        commands::commands_print_json_events,
        changes::a_target_port_changes_without_a_failed_call = upgrades_and_downgrades(BundleChange::TargetPort)
            within all_changes_together_fail_no_call,
        changes::a_service_port_changes_without_a_failed_call = upgrades_and_downgrades(BundleChange::ServicePorts)
            within all_changes_together_fail_no_call,
        changes::the_service_port_of_the_conversion_changes_without_a_failed_call = upgrades_and_downgrades(BundleChange::ConversionPort)
            within all_changes_together_fail_no_call,
        changes::a_deployment_is_renamed_without_a_failed_call = upgrades_and_downgrades(BundleChange::DeploymentName)
            within all_changes_together_fail_no_call,
        changes::webhooks_are_renamed_without_a_failed_call = upgrades_and_downgrades(BundleChange::WebhookNames)
            within all_changes_together_fail_no_call,
        changes::webhook_paths_change_without_a_failed_call = upgrades_and_downgrades(BundleChange::WebhookPaths)
            within all_changes_together_fail_no_call,
        changes::one_replica_is_upgraded_without_a_failed_call = upgrades_and_downgrades(BundleChange::OneReplica)
            within all_changes_together_fail_no_call,
        changes::a_recreate_strategy_upgrades_without_a_failed_call = upgrades_and_downgrades(BundleChange::Recreate)
            within all_changes_together_fail_no_call,
        changes::max_unavailable_for_every_pod_upgrades_without_a_failed_call = upgrades_and_downgrades(BundleChange::MaxUnavailable)
            within all_changes_together_fail_no_call,
        changes::slow_pods_are_upgraded_without_a_failed_call = upgrades_and_downgrades(BundleChange::SlowPods)
            within all_changes_together_fail_no_call,
        changes::a_network_policy_changes_without_a_failed_call = upgrades_and_downgrades(BundleChange::NetworkPolicy)
            within all_changes_together_fail_no_call,
        changes::a_config_map_changes_without_a_failed_call = upgrades_and_downgrades(BundleChange::ConfigMap)
            within all_changes_together_fail_no_call,
        changes::a_role_loses_rules_without_a_failed_call = upgrades_and_downgrades(BundleChange::Role)
            within all_changes_together_fail_no_call,
        admission_proof::a_bundle_without_conversion_is_tested_before_it_is_armed,
        admission_proof::a_lossy_conversion_is_accepted_with_an_exception,
        api_server_probe::a_probe_left_by_a_crash_is_deleted,
        interruption::overridden_settings_and_untested_webhooks_are_reported,
        upgrade::a_downgrade_happens_only_when_allowed,
        interpretation::a_bundle_is_available_when_its_custom_resource_is_healthy,
        interpreter_outages::a_bundle_repairs_the_interpreter_of_its_own_objects,
        installed_revision::the_installed_revision_is_kept_while_the_next_is_rejected,
        revisions::a_foreign_config_map_is_not_overwritten_by_a_revision_record,
        revisions::an_install_survives_the_deletion_of_its_source,
        revisions::a_pinned_source_installs_no_other_bundle,
        catalogs::the_command_installs_each_bundle_of_an_upgrade_path,
        catalogs::a_catalog_channel_is_installed_bundle_by_bundle,
        catalogs::a_catalog_bundle_waits_for_its_approval,
        images::a_recorded_bundle_image_needs_no_registry,
        images::an_image_that_cannot_be_pulled_keeps_the_installed_bundle,
        refusal::a_broken_bundle_is_refused_before_anything_is_written,
        refusal::a_foreign_object_is_not_adopted,
        refusal::an_install_mode_that_is_not_supported_is_refused,
        every_kind::a_validating_webhook_keeps_its_trust_bundle = keeps_its_trust_bundle("ValidatingWebhookConfiguration"),
        every_kind::a_mutating_webhook_keeps_its_trust_bundle = keeps_its_trust_bundle("MutatingWebhookConfiguration"),
        every_kind::an_extension_config_keeps_its_trust_bundle = keeps_its_trust_bundle("ExtensionConfig"),
        every_kind::an_interpreter_keeps_its_trust_bundle = keeps_its_trust_bundle("ResourceInterpreterWebhookConfiguration"),
        every_kind::a_config_map_keeps_its_trust_bundle = keeps_its_trust_bundle("ConfigMap"),
        drift::a_deleted_webhook_configuration_is_created_again,
        contest::repairs_slow_down_while_another_client_reverts_them,
        secrets::a_deleted_serving_secret_is_issued_again,
        secrets::a_deleted_ca_secret_is_created_again,
        secrets::a_key_that_does_not_match_its_certificate_is_replaced,
        secrets::an_invalid_trust_bundle_is_repaired_and_never_injected,
        secrets::a_damaged_ca_secret_is_replaced,
        secrets::an_expired_ca_at_start_is_replaced,
        service::endpoints_that_do_not_serve_are_named,
        service::endpoints_that_kubernetes_does_not_update_are_refreshed needs Faults,
        crash::a_leaf_rotation_resumes_from_every_write = resumes(AdminOperation::LeafRotation),
        disruption::random_errors_and_cut_watches_lose_nothing = survives(Disruption::Faults) needs Faults,
        monitoring::every_metric_in_alerts_and_the_dashboard_is_exported,
        traces::an_install_and_a_rotation_are_one_trace_each_across_restarts,
        traces::a_hanging_trace_collector_delays_nothing,
        claims::the_second_claim_is_rejected_until_the_first_is_deleted,
        claims::the_older_claim_wins_in_any_order,
        claims::bundles_with_invalid_conversions_are_rejected,
        adoption::objects_of_a_bundle_deployment_cannot_be_adopted,
        missing_kinds::objects_without_a_served_kind_are_created_later,
        missing_kinds::a_bundle_waits_for_the_kinds_that_it_requires,
        self_managed::a_conversion_that_the_operator_manages_itself_is_not_changed,
        ownership::copies_of_installed_objects_are_not_managed,
        ownership::a_removed_label_is_restored,
        ownership::a_client_that_undoes_every_repair_is_named_and_slowed_down,
        stand_in::annotations_of_cluster_api_are_answered,
        stand_in::the_ca_of_a_stopped_injector_stays_trusted,
        remote::a_rotation_waits_for_targets_of_a_second_cluster,
        remote::an_unusable_kubeconfig_is_named_and_delays_no_local_target,
        discovery::dead_servers_do_not_delay_other_discoveries,
        discovery::extension_configs_that_are_paused_or_managed_elsewhere_are_skipped,
        discovery::an_older_version_is_discovered_until_a_newer_one_is_served,
        policies::policies_override_objects_only_while_they_exist,
        overridden_bundles::override_policies_apply_to_bundles_without_a_policy_server,
        blocked_removals::a_paused_bundle_deployment_repairs_only_its_conversion,
        leader::the_next_leader_completes_the_rotation_of_a_killed_one,
        leader::a_target_is_repaired_without_a_leader,
        leader::a_terminated_leader_hands_over_immediately,
        idle::nothing_is_written_when_nothing_changes,
    }
    [ApiServer] {
        revisions::objects_can_be_applied_at_old_versions_after_a_rollback,
        changes::webhooks_receive_another_version_without_a_failed_call = upgrades_and_downgrades(BundleChange::WebhookVersions),
        install::admission_webhooks_of_one_namespace_skip_others,
        doctor::doctor_finds_each_fault,
        documentation::every_documented_command_runs,
        documentation::every_documented_object_is_accepted needs AdmissionPolicies,
        documentation::documented_policies_reject_forbidden_installs needs Impersonation,
        changes::a_source_changes_during_an_upgrade_without_a_failed_call,
        changes::a_selector_is_reverted_during_an_upgrade_without_a_failed_call,
        changes::an_admins_match_condition_survives_a_renamed_deployment,
        changes::bundles_with_equal_pod_labels_receive_only_their_own_calls,
        upgrade::a_broken_revision_is_stopped_at_its_canary,
        admission_proof::a_revision_with_failing_admission_webhooks_is_never_armed,
        admission_proof::a_generated_object_that_does_not_convert_blocks_no_install,
        api_server_probe::the_api_server_probes_each_server_once,
        api_server_probe::a_server_that_only_the_operator_reaches_is_not_armed,
        api_server_probe::a_server_that_only_the_api_server_reaches_is_not_armed,
        upgrade::removal_during_a_canary_leaves_nothing_behind,
        upgrade::without_a_canary_a_broken_revision_can_be_rolled_back,
        upgrade::crds_without_a_conversion_are_served_before_the_canary,
        interruption::pods_with_a_host_port_are_interrupted_only_when_allowed,
        upgrade::a_downgrade_never_loses_stored_objects,
        operator_condition::an_upgrade_waits_until_the_operator_condition_allows_or_overrides_it,
        interpreter_outages::an_interpreter_webhook_may_be_slow_or_unavailable,
        retention::replicas_that_an_autoscaler_sets_are_kept_across_upgrades,
        retention::injected_containers_are_kept_across_an_upgrade,
        installed_revision::the_installed_revision_is_kept_while_the_next_is_stuck,
        installed_revision::the_installed_revision_is_kept_while_a_started_one_is_rejected,
        images::the_command_installs_from_an_image_and_from_a_folder,
        migration::stored_objects_follow_the_storage_version,
        migration::a_version_is_removed_only_when_no_object_is_stored_in_it,
        migration::objects_that_cannot_be_rewritten_are_named,
        migration::a_ca_rotation_does_not_restart_a_storage_migration,
        crd_upgrade::an_unsafe_crd_change_is_rejected_until_it_is_allowed,
        crd_upgrade::an_object_that_violates_a_new_schema_blocks_the_upgrade,
        crd_upgrade::unreadable_objects_block_the_upgrade,
        crd_upgrade::a_failed_upgrade_removes_new_fields_unless_objects_use_them,
        schemas::invalid_bundle_deployments_are_refused,
        schemas::invalid_serving_certificates_are_refused,
        workloads::stateful_sets_and_daemon_sets_that_never_reload_are_restarted needs Controllers,
        rotation::a_target_that_rejects_its_trust_bundle_is_named_and_others_are_updated,
        every_kind::a_crd_keeps_its_trust_bundle = keeps_its_trust_bundle("CustomResourceDefinition"),
        every_kind::an_api_service_keeps_its_trust_bundle = keeps_its_trust_bundle("APIService"),
        drift::every_kind_of_target_is_repaired,
        drift::concurrent_writes_of_other_clients_are_kept,
        cold_start::the_operator_starts_without_any_optional_kind,
        contest::an_older_trust_bundle_fails_no_call,
        contest::an_empty_trust_bundle_fails_calls_only_until_it_is_repaired,
        contest::an_unrelated_trust_bundle_fails_calls_only_until_it_is_repaired,
        gitops::a_crd_applied_without_a_conversion_fails_no_call,
        gitops::another_conversion_fails_calls_only_until_it_is_repaired,
        gitops::the_guard_protects_the_conversion_from_every_tool,
        gitops::gitops_with_argo_cd_reverts_nothing = reverts_nothing(Engine::ArgoCd) needs Gitops,
        gitops::gitops_with_argo_cd_and_server_side_apply_reverts_nothing = reverts_nothing(Engine::ArgoCdServerSide) needs Gitops,
        gitops::gitops_with_flux_reverts_nothing = reverts_nothing(Engine::Flux) needs Gitops,
        gitops::gitops_tools_see_installs_progress_succeed_and_fail needs Gitops,
        service::a_certificate_follows_its_service,
        service::an_unreachable_endpoint_keeps_its_ca_trusted,
        changes::an_upgrade_that_changes_everything_resumes_from_every_write,
        crash::a_storage_migration_resumes_from_every_write = resumes(AdminOperation::Migration),
        crash::a_removal_resumes_from_every_write = resumes(AdminOperation::Removal),
        crash::a_removal_with_crds_resumes_from_every_write = resumes(AdminOperation::RemovalWithCrds),
        crash::a_removal_after_its_namespace_resumes_from_every_write = resumes(AdminOperation::RemovalAfterNamespace),
        disruption::restarts_of_the_api_server_lose_nothing = survives(Disruption::Restart) needs Restart,
        disruption::storage_that_hangs_loses_nothing = survives(Disruption::Pause) needs Pause,
        power_loss::targets_are_repaired_after_an_api_server_loses_power,
        private_keys::private_keys_appear_only_in_secrets,
        guard::every_replica_denies_every_forbidden_write,
        guard::the_guards_own_certificate_rotates_without_a_gap,
        guard::drift_without_the_guard_is_repaired_and_its_manager_reported,
        guard::kubectl_prints_the_denials_of_the_guard,
        claims::a_kind_is_claimed_under_any_crd_name,
        adoption::an_api_of_another_owner_is_rejected_with_its_name,
        adoption::an_adopted_crd_keeps_its_objects,
        adopted_installs::an_adoption_that_would_interrupt_calls_is_rejected,
        adopted_installs::an_install_with_cert_manager_is_adopted_and_given_back_without_a_failed_call needs Cainjector,
        adopted_installs::an_install_with_service_ca_is_adopted_and_given_back_without_a_failed_call,
        adopted_installs::a_helm_release_is_adopted_and_given_back_without_a_failed_call needs Helm,
        adopted_installs::an_operator_of_olm_is_adopted_without_a_failed_call needs Controllers,
        ownership::objects_of_a_deleted_bundle_deployment_are_taken_over,
        ownership::replicas_that_another_client_sets_are_kept,
        ownership::an_object_in_another_version_than_stored_is_applied_once_and_deleted,
        injection::an_owner_can_remove_the_conversion_of_an_applied_crd,
        added_kinds::objects_of_added_kinds_request_a_ca_like_webhooks,
        foreign_issuer::a_foreign_ca_is_replaced_in_one_step_without_a_failed_call,
        foreign_issuer::each_webhook_of_a_configuration_trusts_its_own_ca_source,
        foreign_issuer::a_target_can_request_the_ca_of_the_api_server,
        stand_in::annotations_of_cert_manager_are_answered,
        stand_in::annotations_of_service_ca_are_answered_and_certificates_rotate,
        stand_in::targets_of_a_running_injector_are_not_changed,
        remote::targets_of_a_second_cluster_are_managed_like_local_ones,
        discovery::extension_servers_are_discovered,
        discovery::a_server_behind_a_service_is_discovered_while_its_ca_rotates,
        runtime_hooks::no_call_of_an_extension_fails_while_its_certificate_rotates,
        interpreters::an_interpreter_is_called_while_its_certificates_rotate,
        runtime_hooks::no_call_of_an_extension_fails_while_slow_replicas_die_during_rotations,
        policies::a_policy_that_always_fails_is_suspended_until_it_succeeds,
        policies_disarming::policies_are_disarmed_before_their_server_is_removed,
        policies::no_write_fails_while_the_policy_server_restarts_and_rotates,
        policy_churn::no_write_fails_while_many_policies_are_created_and_deleted,
        policies_hostile::hostile_policies_neither_delay_other_writes_nor_exhaust_memory,
        policies_cold_start::a_cluster_starts_with_policies_for_everything_and_no_policy_server needs Restart,
        policy_samples::every_sample_policy_passes_its_cases,
        overridden_bundles::changing_and_deleting_an_override_policy_fails_no_call,
        overridden_bundles::the_policy_server_agrees_with_overridden_bundle_objects,
        policy_references::policies_read_references_and_give_up_on_slow_servers,
        policy_reports::audit_violations_are_reported_while_they_last,
        extension_config_policies::invalid_extension_configs_are_rejected needs AdmissionPolicies,
        extension_config_policies::extension_config_policies_are_off_while_webhooks_validate needs AdmissionPolicies,
        cert_manager::targets_that_also_request_cert_manager_have_one_writer needs Cainjector,
        cert_manager::cert_manager_and_windlass_each_handle_their_own_targets needs Cainjector,
        cert_manager::windlass_replaces_cert_manager_only_while_it_is_stopped needs Cainjector,
        callers::a_bundles_extension_config_is_armed_after_proof_and_removed_first,
        callers::external_callers_of_a_bundle_are_served_through_upgrades,
        callers::a_bundles_api_service_is_armed_after_proof_and_replaces_no_other,
        ui::the_page_is_shown_only_to_authorized_users needs Controllers,
        split_processes::certificates_and_bundles_run_in_separate_processes,
        rights::every_bundled_kind_is_created_updated_and_deleted,
        rights::the_operator_grants_only_what_it_is_permitted_to_grant,
        rights::armed_webhooks_are_reported_although_the_probe_cannot_be_deleted,
        tenancy::a_bundle_gets_no_rights_that_its_account_lacks needs Impersonation,
        kubectl::kubectl_get_shows_the_status,
        kubectl::kubectl_describe_shows_the_events,
        removal::webhooks_are_removed_before_their_servers,
        removal::conversion_that_stored_objects_need_is_kept,
        removal::stored_old_versions_are_rewritten_before_conversion_ends,
        removal::crds_are_deleted_only_on_request_and_with_every_object,
        removal::a_deletion_waits_until_the_operator_runs_again,
        blocking::a_dead_webhook_does_not_block_its_own_server,
        blocked_removals::a_blocked_removal_deletes_nothing_until_it_may_rewrite_objects,
        blocked_removals::a_kept_crd_without_objects_serves_one_version,
        dry_run::objects_that_the_api_server_would_reject_block_the_install,
        dry_run::a_dry_run_prints_the_changes_and_writes_nothing,
        namespace::deleting_the_namespace_first_keeps_objects_in_other_namespaces,
        namespace::a_namespace_deleted_while_the_operator_is_down_is_cleaned_up_later,
        leader::a_paused_leader_writes_nothing_after_it_resumes,
        leader::two_leaders_rotate_without_a_failed_call,
        leader::invalid_leases_are_rejected,
        idle::nothing_is_written_after_an_upgrade,
    }
    [Cluster] {
        shipped::windlass_as_shipped_fails_no_call = fails_no_call(Package::Manifests) needs ControllerRuntime,
        shipped::the_chart_as_shipped_fails_no_call = fails_no_call(Package::Chart) needs ControllerRuntime & Helm,
        install::all_three_webhook_kinds_are_armed_and_serve,
        node_images::images_are_pulled_by_digest_with_a_pull_secret,
        network_policy::a_network_policy_against_windlass_fails_no_call,
        node_faults::operations_survive_a_stopped_kubelet = operations_survive(NodeFault::KubeletStopped),
        node_faults::operations_survive_a_killed_containerd = operations_survive(NodeFault::ContainerdKilled),
        node_faults::operations_survive_a_stopped_kube_proxy = operations_survive(NodeFault::KubeProxyStopped),
        node_faults::operations_survive_a_drained_node = operations_survive(NodeFault::Drained),
        node_faults::operations_survive_a_deleted_node = operations_survive(NodeFault::Deleted),
        node_faults::operations_survive_a_power_loss = operations_survive(NodeFault::PowerLost),
        node_faults::operations_survive_kills_of_windlass = operations_survive(NodeFault::WindlassKilled),
        node_faults::operations_survive_a_killed_api_server = operations_survive(NodeFault::ApiServerKilled) needs SecondApiServer,
        node_faults::operations_survive_a_lagging_api_server = operations_survive(NodeFault::ApiServerPaused) needs SecondApiServer,
    }
    [Sandbox, ApiServer] {
        changes::a_selector_changes_without_a_failed_call = upgrades_and_downgrades(BundleChange::Selector),
        changes::webhooks_move_to_another_deployment_without_a_failed_call = upgrades_and_downgrades(BundleChange::Split),
        changes::a_second_deployment_without_webhooks_is_upgraded = upgrades_and_downgrades(BundleChange::Companion),
        crash::an_install_resumes_from_every_write = resumes(AdminOperation::Install),
        crash::an_upgrade_resumes_from_every_write = resumes(AdminOperation::Upgrade),
        crash::a_rollback_resumes_from_every_write = resumes(AdminOperation::Rollback),
        crash::a_ca_rotation_resumes_from_every_write = resumes(AdminOperation::CaRotation),
    }
    [Sandbox, Cluster] {
        install::an_upgrade_under_load_fails_no_call,
        rotation::the_leaf_rotates_under_load,
    }
    [ApiServer, Cluster] {
        changes::all_changes_together_fail_no_call = upgrades_and_downgrades(BundleChange::Everything),
        changes::pods_restart_during_an_upgrade_without_a_failed_call,
        changes::a_controller_runtime_server_is_upgraded_repeatedly needs ControllerRuntime,
        upgrade::a_canary_that_cannot_start_reports_the_cause,
        revisions::the_command_rolls_back_to_an_earlier_revision,
        rotation::the_ca_rotates_under_load,
        rotation::a_server_that_never_reloads_is_restarted_without_a_failed_call,
        added_kinds::a_config_map_provides_the_trust_bundle_to_pods,
        installation::windlass_is_installed_upgraded_and_removed_without_a_failed_call needs Controllers,
        blocking::traffic_is_repaired_although_a_replica_is_missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_runs_on_one_or_two_beds() {
        for scenario in SCENARIOS {
            let beds = scenario.beds;
            assert!((1..=2).contains(&beds.len()), "{scenario:?} runs on {beds:?}");
        }
    }

    #[test]
    fn the_sandbox_supports_its_scenarios() {
        let supported = [Disruption::Restart, Disruption::Pause, Disruption::Faults];
        for scenario in SCENARIOS {
            let is_supported = scenario.needs.iter().all(|need| supported.contains(need));
            assert!(
                is_supported || !scenario.beds.contains(&TestBed::Sandbox),
                "{scenario:?}"
            );
        }
    }
}
