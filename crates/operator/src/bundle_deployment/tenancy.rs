//! Installs as a ServiceAccount: whether it is there, and may do all that an install does, is known before anything is written.
//! What it may not do the API server refuses anyway, since it is asked as that account.

use serde_json::Value;
use windlass_api::{BundleDeployment, DeletionPolicy, MissingRights};
use windlass_cluster::{Cluster, Kind, RequestError, ServiceAccount, apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, object, text::Listing};

use super::{
    deletion::keeps, halt::Halt, objects::CALLER_KINDS, reconciler::BundleReconciler, report::InstallReport,
    triggers::OWNED_KINDS,
};
use crate::install::{
    plan::Plan,
    status::Milestone,
    tenancy::{HeldRights, NeededRights},
};

const SERVICE_ACCOUNT: Kind = Kind::new("v1", "ServiceAccount");

/// How a message lists what is missing.
const RIGHTS: Listing = Listing {
    most: 10,
    separator: "; ",
    way_to_rest: "",
};

impl BundleReconciler {
    /// Halts where the account of a BundleDeployment is not there, or may not do what a plan needs.
    pub(super) async fn gate_on_rights(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let Some(account) = &owner.account else {
            return Ok(());
        };
        let key = SERVICE_ACCOUNT.object(Some(account.namespace()), account.name());
        if self.context.cluster.read(&key).await?.is_none() {
            let message = format!("{account} not found: create it, or change spec.serviceAccountName");
            return Err(Halt::failed(
                Milestone::Accepted,
                "ServiceAccountNotFound",
                message,
            ));
        }
        let kept: Vec<_> = plan.phases.all().filter_map(ObjectKey::from_object).collect();
        let mut dropped = self.written_as(owner);
        dropped.retain(|live| ObjectKey::from_object(live).is_some_and(|key| !keeps(&kept, &key)));
        let roles = self.roles_elsewhere(plan, &kept).await?;
        let role = |key: &ObjectKey| {
            let mut roles = roles.iter();
            roles.find(|role| ObjectKey::from_object(role).is_some_and(|role| role.is_same_object(key)))
        };
        // What could never be removed again is not installed.
        let removable = plan.phases.all().filter(|object| {
            let key = ObjectKey::from_object(object)
                .filter(|key| Kind::from_key(key) != kinds::CUSTOM_RESOURCE_DEFINITION);
            key.is_some_and(|key| deletes_as(owner, &Kind::from_key(&key)).is_some())
        });
        let needed = NeededRights::to_apply(plan.phases.all(), role)
            .and_to_delete(&dropped)
            .and_to_delete(removable);
        self.gate_on(account, owner, &needed, Milestone::Accepted, report)
            .await
    }

    /// Halts where the account of a BundleDeployment may not delete what a removal deletes.
    pub(super) async fn gate_on_rights_to_remove(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let Some(account) = &owner.account else {
            return Ok(());
        };
        let mut removed = self.written_as(owner);
        if deployment.spec.deletion_policy == DeletionPolicy::DeleteCRDs {
            let crds = self.list_owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).await?;
            removed.extend(crds);
        }
        let needed = NeededRights::default().and_to_delete(&removed);
        self.gate_on(account, owner, &needed, Milestone::Armed, report)
            .await
    }

    async fn gate_on(
        &self,
        account: &ServiceAccount,
        owner: &FieldOwner,
        needed: &NeededRights,
        at: Milestone,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let name = &owner.bundle_deployment;
        let now = self.context.clock.now();
        if self
            .sufficient
            .is_known(name, account, needed, now, self.timing.recheck)
        {
            return Ok(());
        }
        let held = held_rights(&self.context.cluster.impersonating(Some(account)), needed).await;
        let held = held.map_err(|error| not_impersonated(error, account, at))?;
        let missing = needed.missing(&held);
        if missing.is_empty() {
            self.sufficient.note(name, account, needed, now);
            return Ok(());
        }
        let rights: Vec<_> = missing.iter().flat_map(said).collect();
        let message = format!(
            "{account} lacks rights that the install requires: {}; to print roles that grant them, run windlass status {name} --missing-rights",
            RIGHTS.summarize(&rights)
        );
        report.missing_rights = missing;
        Err(Halt::failed(at, "ServiceAccountLacksRights", message))
    }

    /// The objects that the account has written and is to delete some day. CRDs stay unless that is asked for.
    fn written_as(&self, owner: &FieldOwner) -> Vec<Value> {
        let kinds = OWNED_KINDS
            .iter()
            .filter(|kind| deletes_as(owner, kind).is_some());
        let objects = kinds.flat_map(|kind| self.owned(owner, kind));
        objects.map(|object| Value::clone(&object)).collect()
    }

    /// The roles that bindings of a plan name and that are not of the plan.
    async fn roles_elsewhere(&self, plan: &Plan, planned: &[ObjectKey]) -> Result<Vec<Value>, RequestError> {
        let mut roles = Vec::new();
        for binding in plan.phases.all() {
            let named = ObjectKey::from_object(binding).filter(|key| key.kind.ends_with("RoleBinding"));
            let (Some(key), Some(kind), Some(name)) = (
                named,
                object::text(binding, "/roleRef/kind"),
                object::text(binding, "/roleRef/name"),
            ) else {
                continue;
            };
            let role = ObjectKey {
                kind: kind.to_owned(),
                name: name.to_owned(),
                namespace: key.namespace.clone().filter(|_| kind == "Role"),
                ..key
            };
            if ["Role", "ClusterRole"].contains(&kind) && !keeps(planned, &role) {
                roles.extend(self.context.cluster.read(&role).await?);
            }
        }
        Ok(roles)
    }
}

/// As whom an object is deleted. What sends API traffic to a bundle is disarmed whatever rights are left: requests would fail.
pub(super) fn deletes_as<'a>(owner: &'a FieldOwner, kind: &Kind) -> Option<&'a ServiceAccount> {
    owner
        .service_account_for(kind)
        .filter(|_| !CALLER_KINDS.contains(kind))
}

/// The ServiceAccount whose rights an install has.
pub(super) fn account(deployment: &BundleDeployment) -> Option<ServiceAccount> {
    let name = deployment.spec.service_account_name.as_deref()?;
    Some(ServiceAccount::new(&deployment.spec.namespace, name))
}

/// What whoever `cluster` acts as has, wherever something is needed.
///
/// # Errors
///
/// When the cluster does not say it.
pub async fn held_rights(cluster: &Cluster, needed: &NeededRights) -> Result<HeldRights, RequestError> {
    let mut held = HeldRights::default();
    for place in needed.places() {
        let answer = cluster.granted_rules(place).await?;
        let rules = answer.rules.into_iter();
        let rules = rules.filter_map(|rule| serde_json::from_value(rule).ok());
        let place = place.map(str::to_owned);
        if answer.is_incomplete {
            held.incomplete.insert(place.clone());
        }
        held.rules.insert(place, rules.collect());
    }
    Ok(held)
}

/// What is missing in one place, a rule each.
fn said(missing: &MissingRights) -> Vec<String> {
    let place = match &missing.namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in the whole cluster".to_owned(),
    };
    let rules = missing.rules.iter();
    rules.map(|rule| format!("{rule} {place}")).collect()
}

/// Where Windlass may not act as the account, somebody has to allow it.
fn not_impersonated(error: RequestError, account: &ServiceAccount, at: Milestone) -> Halt {
    if !error.is_forbidden() {
        return error.into();
    }
    let message = format!(
        "cannot act as {account}: {error}; apply the ClusterRole windlass of this release, which has the verb impersonate"
    );
    Halt::failed(at, "ImpersonationForbidden", message)
}
