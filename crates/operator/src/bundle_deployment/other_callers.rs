//! Who calls the Services of a bundle, or those that it takes over, and is not of the bundle: a webhook configuration of a platform
//! team, or what an adoption has left over. It calls one Service all the time, and nobody points it to another.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use windlass_api::BundleDeployment;
use windlass_cluster::{Kind, apply::FieldOwner, kinds};
use windlass_object::ObjectKey;

use super::{halt::Halt, objects::CALLER_KINDS, reconciler::BundleReconciler, report::InstallReport};
use crate::{
    install::{
        plan::{CALLS, Plan, unserved},
        status::Milestone,
        traffic::{CalledPort, Color},
    },
    removal_obstacles::{cluster_scoped_owners, external_calls, is_probe},
};

/// What calls a Service to convert.
static CONVERTED: Kind = kinds::CUSTOM_RESOURCE_DEFINITION;

impl BundleReconciler {
    /// The Services of others that anything in the cluster calls, where something is to be taken over.
    pub(super) fn called_of_others(&self, owner: &FieldOwner) -> Vec<Arc<Value>> {
        if owner.adopt.is_empty() {
            return Vec::new();
        }
        let called = self.called(|_| true);
        let keys = called
            .iter()
            .map(|(namespace, name)| kinds::SERVICE.object(Some(namespace), name));
        keys.filter_map(|key| self.context.index.find(&key))
            .filter(|service| !owner.owns(service))
            .collect()
    }

    /// Leads whoever else calls a Service with OLM's name to pods of the plan, when what is ours calls them through the other
    /// one: the pods that it leads to are about to end.
    pub(super) async fn lead_others(&self, owner: &FieldOwner, plan: &Plan) -> Result<(), Halt> {
        let ours = self.called_services(owner, plan);
        let others = self.called(|caller| !owner.owns(caller));
        for certificate in &plan.certificates {
            let name = &certificate.service;
            let is_left = ours.contains(&certificate.green) && !ours.contains(name);
            let is_called = others.contains(&(plan.namespace.clone(), name.clone()));
            let Some(blue) = plan.service(name, Color::Blue) else {
                continue;
            };
            if is_left && is_called && !self.leads_to_revision(owner, plan, &blue) {
                self.ensure_services(owner, plan, &[blue], false).await?;
                // Nodes are to observe it, too, before those pods end.
                self.note_disarmed(owner);
            }
        }
        Ok(())
    }

    /// What others call of the bundle's Services that `plan` does not serve, and the installed revision does.
    pub(super) async fn unserved(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        plan: &Plan,
        report: &InstallReport,
    ) -> Result<Vec<String>, Halt> {
        // A first install that is under way has served nothing yet.
        let is_serving = |service: &str| {
            let key = kinds::SERVICE.object(Some(&plan.namespace), service);
            let live = self.context.index.find(&key);
            live.is_some_and(|live| report.installed.is_some() || !owner.owns(&live))
        };
        let others = || {
            self.callers()
                .filter(|caller| !is_probe(caller) && !self.goes_with(owner, caller))
        };
        // What has been installed is read from its record: most of the time nobody asks.
        if unserved(plan, None, is_serving, others()).is_empty() {
            return Ok(Vec::new());
        }
        let installed = self.installed_plan(deployment, report).await?;
        if installed.is_none() && report.installed.is_some() {
            // Its record is lost, and with it what was served.
            return Ok(Vec::new());
        }
        let installed = installed.as_deref().map(|installed| &installed.plan);
        Ok(unserved(plan, installed, is_serving, others()))
    }

    /// Halts while others call a Service of which `is_going`: their requests would fail. Where that is allowed, as for what the
    /// bundle's own operator configures again and again, it goes nevertheless.
    pub(super) fn gate_on_other_callers(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        is_going: impl Fn(&Value) -> bool,
    ) -> Result<(), Halt> {
        if deployment.spec.upgrade.allow_interruption {
            return Ok(());
        }
        self.gate_on_listed(
            &CALLER_KINDS,
            "webhooks among them may call removed servers",
            Milestone::Migrated,
        )?;
        let is_going = |key: &ObjectKey| {
            let live = self.context.index.find(key);
            live.is_some_and(|live| owner.owns(&live) && is_going(&live))
        };
        let calls = external_calls(self.callers(), |caller| self.goes_with(owner, caller), is_going);
        if calls.is_empty() {
            return Ok(());
        }
        let calls: Vec<_> = calls.into_iter().collect();
        let message = format!(
            "{}, which would be removed with its pods: requests would fail. Delete it, point it elsewhere, or after an adoption run windlass adoption confirm {}; the removal then resumes automatically. If it comes back, or its requests may fail, set spec.upgrade.allowInterruption: true",
            CALLS.summarize(&calls),
            owner.bundle_deployment
        );
        Err(Halt::failed(Milestone::Migrated, "CalledByOthers", message))
    }

    /// The Services, by namespace and name, that anything in the cluster calls of which `is_meant`.
    fn called(&self, is_meant: impl Fn(&Value) -> bool) -> BTreeSet<(String, String)> {
        self.callers()
            .filter(|caller| is_meant(caller))
            .flat_map(|caller| CalledPort::all_of(&caller))
            .map(|call| (call.namespace, call.service))
            .collect()
    }

    /// Whether a caller goes with the bundle: it is of it, or the bundle's operator has made it and the garbage collector deletes it.
    fn goes_with(&self, owner: &FieldOwner, caller: &Value) -> bool {
        let is_there = |key| {
            self.context
                .index
                .find(&key)
                .is_some_and(|live| owner.owns(&live))
        };
        owner.owns(caller) || cluster_scoped_owners(caller).any(is_there)
    }

    /// What in the cluster may call a Service, whosever it is.
    fn callers(&self) -> impl Iterator<Item = Arc<Value>> {
        let kinds = CALLER_KINDS.iter().chain([&CONVERTED]);
        kinds.flat_map(|kind| self.context.index.objects(kind))
    }
}
