//! The preview of an install: a dry run of each object, compared with the cluster.

use std::{collections::BTreeSet, sync::Arc};

use policy::CompiledPolicy;
use serde_json::Value;
use windlass_api::BundleDeployment;
use windlass_bundle::{Bundle, BundledKind, crds::with_conversion};
use windlass_cluster::{
    Cluster, Kind, RequestError,
    apply::{FieldOwner, apply_body},
    kinds,
};
use windlass_crd::{
    claims::Claimant,
    upgrade_safety::{Finding, compare, is_refused},
};
use windlass_object::{ObjectKey, names, object};
use windlass_operator::install::plan::{
    Absences, Plan, PreflightObservation, Stage, optional_kinds, preflight, staged, versions_of,
    watched_namespaces, without,
};

use super::{
    difference::changed_fields,
    overridden_plan::{Overridden, overridden_plan},
    rights::{Grant, grants},
};
use crate::commands::cluster::{decode, explain_error, list};

/// The effects of an install.
#[derive(Debug, Default)]
pub(in super::super) struct Preview {
    /// Objects that do not exist yet.
    pub(super) created: Vec<ObjectKey>,
    /// Objects that would change, with the changed fields.
    pub(super) changed: Vec<(ObjectKey, Vec<String>)>,
    /// Objects of the installed bundle that would be deleted.
    pub(super) removed: Vec<ObjectKey>,
    /// CustomResourceDefinitions that the bundle no longer has: they are kept with their objects.
    pub(super) released: Vec<ObjectKey>,
    /// Optional objects that would be left out, with the reason.
    pub(super) left_out: Vec<String>,
    /// Policies that override objects, and policies that fail and are ignored.
    pub(super) overridden: Vec<String>,
    /// Objects that cannot be validated yet: their namespace does not exist, or a webhook does not support
    /// dry runs.
    pub(super) untried: Vec<ObjectKey>,
    /// Why the install would be refused.
    pub(super) refusals: Vec<String>,
    /// Breaking changes of CustomResourceDefinitions.
    pub(super) findings: Vec<Finding>,
    /// The rights that the bundle gets.
    pub(super) grants: Vec<Grant>,
}

impl Preview {
    /// Previews the install of `bundle` for `deployment`, with the cluster's policies, and `policies`, which
    /// replace those of the same name.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be read, or the bundle cannot be installed with these settings.
    pub(in super::super) async fn new(
        cluster: &Cluster,
        deployment: Value,
        bundle: &Bundle,
        policies: &[Arc<CompiledPolicy>],
    ) -> anyhow::Result<Self> {
        let deployment: BundleDeployment = decode(deployment)?;
        let Overridden {
            plan,
            notices: overridden,
            refusals,
        } = overridden_plan(cluster, bundle, &deployment, policies).await?;
        let absences = find_absences(cluster, &plan).await?;
        let (plan, left_out) = without(&plan, &absences).unwrap_or((plan, Vec::new()));
        let plan = &plan;
        let owner = FieldOwner {
            bundle_deployment: deployment.metadata.name.clone().unwrap_or_default(),
            uid: deployment.metadata.uid.clone().unwrap_or_default(),
            namespace: deployment.spec.namespace.clone(),
            adopt: deployment.spec.adopt.clone(),
            account: None,
        };
        let mut preview = Self {
            grants: grants(plan.phases.all()),
            left_out,
            overridden,
            refusals,
            ..Self::default()
        };
        let mut there = Vec::new();
        for desired in plan.phases.all() {
            there.extend(
                preview
                    .dry_run(cluster, desired, plan, &owner, &deployment)
                    .await?,
            );
        }
        for key in plan
            .green_services()
            .filter_map(|service| ObjectKey::from_object(&service))
        {
            there.extend(cluster.read(&key).await.map_err(explain_error)?);
        }
        preview.check(cluster, plan, &deployment, &owner, &there).await?;
        preview.find_dropped(cluster, plan, &owner).await?;
        Ok(preview)
    }

    /// Reports whether the install would be refused.
    pub(in super::super) fn is_refused(&self) -> bool {
        !self.refusals.is_empty() || is_refused(&self.findings)
    }

    /// Sends a dry run of one object. Returns the existing object.
    async fn dry_run(
        &mut self,
        cluster: &Cluster,
        desired: &Value,
        plan: &Plan,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
    ) -> anyhow::Result<Option<Value>> {
        let Some(key) = ObjectKey::from_object(desired) else {
            return Ok(None);
        };
        let live = match cluster.read(&key).await {
            Ok(live) => live,
            Err(error @ RequestError::UnknownKind { .. }) => {
                self.refusals.push(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(explain_error(error)),
        };
        let mut body = desired.clone();
        if Kind::from_key(&key) == kinds::CUSTOM_RESOURCE_DEFINITION {
            body = staged(desired, live.as_ref(), Stage::Settled, true);
            if let Some(live) = &live {
                let converts = plan.conversion(&key.name).is_some();
                let desired = with_conversion(desired.clone(), converts);
                let policy = deployment.spec.crd_upgrade_policy();
                self.findings.extend(compare(&key.name, live, &desired, &policy));
            }
        }
        let answer = cluster
            .apply_dry_run(&apply_body(&body, owner), names::INSTALL)
            .await;
        self.record(key, live.as_ref(), answer)?;
        Ok(live)
    }

    fn record(
        &mut self,
        key: ObjectKey,
        live: Option<&Value>,
        answer: Result<Value, RequestError>,
    ) -> anyhow::Result<()> {
        match (answer, live) {
            (Ok(_), None) => self.created.push(key),
            (Ok(after), Some(before)) => {
                let fields = changed_fields(before, &after);
                if !fields.is_empty() {
                    self.changed.push((key, fields));
                }
            }
            (Err(error), live) if error.is_not_found() || error.is_dry_run_unsupported() => {
                if live.is_none() {
                    self.created.push(key.clone());
                }
                self.untried.push(key);
            }
            (Err(error), _) if error.is_rejection() => self.refusals.push(error.to_string()),
            (Err(error), _) => return Err(explain_error(error)),
        }
        Ok(())
    }

    /// Adds refusals due to owners and claims of other BundleDeployments.
    async fn check(
        &mut self,
        cluster: &Cluster,
        plan: &Plan,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        there: &[Value],
    ) -> anyhow::Result<()> {
        let name = &owner.bundle_deployment;
        let crd = kinds::CUSTOM_RESOURCE_DEFINITION;
        let crds = cluster.list(&crd, None, None).await.map_err(explain_error)?;
        let deployments: Vec<Value> = list(cluster, &kinds::BUNDLE_DEPLOYMENT, None).await?;
        let mut claimants: Vec<_> = deployments.iter().map(Claimant::from_object).collect();
        let claims = plan.apis();
        match claimants.iter_mut().find(|claimant| claimant.name == *name) {
            Some(own) => own.claims = claims,
            None => claimants.push(Claimant {
                name: name.clone(),
                // A new BundleDeployment is the youngest, so existing claims win.
                created: "9999".to_owned(),
                uid: String::new(),
                is_observed: true,
                claims,
            }),
        }
        let selector = format!("{}={name}", names::BUNDLE_DEPLOYMENT);
        let installed = cluster
            .list(&kinds::DEPLOYMENT, None, Some(&selector))
            .await
            .map_err(explain_error)?;
        let installed: Vec<_> = installed.iter().filter(|live| owner.owns(live)).collect();
        let unserved = self::find_unserved_calls(cluster, plan, owner, there).await?;
        let (live, crds): (Vec<_>, Vec<_>) = (there.iter().collect(), crds.iter().collect());
        let refusals = preflight(&PreflightObservation {
            claimant: name,
            plan,
            adopt: &owner.adopt,
            claimants: &claimants,
            live: &live,
            crds: &crds,
            deployments: &installed,
            // With --adopt-from, the command redirects these calls first.
            called: &[],
            unserved: &unserved,
            allow_interruption: deployment.spec.upgrade.allow_interruption,
        });
        self.refusals.extend(refusals.iter().map(ToString::to_string));
        Ok(())
    }

    /// Finds installed objects that are not in the plan.
    async fn find_dropped(
        &mut self,
        cluster: &Cluster,
        plan: &Plan,
        owner: &FieldOwner,
    ) -> anyhow::Result<()> {
        let kept: Vec<_> = plan.phases.all().filter_map(ObjectKey::from_object).collect();
        let selector = format!("{}={}", names::BUNDLE_DEPLOYMENT, owner.bundle_deployment);
        for kind in installed_kinds() {
            let listed = match cluster.list(&kind, None, Some(&selector)).await {
                Ok(listed) => listed,
                // Objects of kinds that are not served do not exist.
                Err(RequestError::UnknownKind { .. }) => continue,
                Err(error) => return Err(explain_error(error)),
            };
            let is_canary = |live: &&Value| object::label(live, names::CANARY).is_some();
            let dropped = listed
                .iter()
                .filter(|live| !is_canary(live))
                .filter_map(ObjectKey::from_object);
            for key in dropped {
                let is_same = |known: &ObjectKey| known.is_same_object(&key);
                if kept.iter().chain(&self.removed).any(is_same) {
                    continue;
                }
                if kind == kinds::CUSTOM_RESOURCE_DEFINITION {
                    self.released.push(key);
                } else {
                    self.removed.push(key);
                }
            }
        }
        Ok(())
    }
}

/// Finds calls of other objects to Services that would be taken over, but whose paths the bundle does not
/// serve. The operator knows the served paths of installed bundles.
async fn find_unserved_calls(
    cluster: &Cluster,
    plan: &Plan,
    owner: &FieldOwner,
    there: &[Value],
) -> anyhow::Result<Vec<String>> {
    let taken: BTreeSet<_> = there
        .iter()
        .filter(|live| object::text(live, "/kind") == Some("Service") && !owner.owns(live))
        .filter_map(|live| object::text(live, "/metadata/name"))
        .collect();
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    let mut others = Vec::new();
    for kind in kinds::CALLERS {
        let listed = cluster.list(&kind, None, None).await.map_err(explain_error)?;
        others.extend(
            listed
                .into_iter()
                .filter(|caller| !owner.owns(caller))
                .map(Arc::new),
        );
    }
    let is_taken = |service: &str| taken.contains(service);
    Ok(windlass_operator::install::plan::unserved(
        plan, None, is_taken, others,
    ))
}

/// Finds the optional kinds of a plan that the cluster does not serve.
async fn find_absences(cluster: &Cluster, plan: &Plan) -> anyhow::Result<Absences> {
    let mut absences = Absences::default();
    for (api_version, kind) in optional_kinds(plan) {
        match served_version(cluster, &api_version, &kind).await? {
            None => _ = absences.kinds.insert((api_version, kind)),
            Some(version) if version != api_version => {
                absences.versions.insert((api_version, kind), version);
            }
            Some(_) => {}
        }
    }
    for name in watched_namespaces(plan) {
        let key = kinds::NAMESPACE.object(None, &name);
        let live = cluster.read(&key).await.map_err(explain_error)?;
        if live.is_none_or(|live| object::is_terminating(&live)) {
            absences.namespaces.insert(name);
        }
    }
    Ok(absences)
}

/// Returns the `apiVersion` in which a kind is served, if any.
async fn served_version(cluster: &Cluster, api_version: &str, kind: &str) -> anyhow::Result<Option<String>> {
    for version in versions_of(api_version, kind) {
        let asked = Kind::named(version.clone(), kind.to_owned());
        if cluster.serves(&asked).await.map_err(explain_error)? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// Returns the kinds that bundles can contain, in each version in which they may be served.
fn installed_kinds() -> impl Iterator<Item = Kind> {
    let installed = BundledKind::installable().flat_map(|kind| {
        let versions = versions_of(kind.api_version, kind.kind).into_iter();
        versions.map(move |version| Kind::named(version, kind.kind))
    });
    installed.chain([
        kinds::DEPLOYMENT,
        kinds::SERVING_CERTIFICATE,
        kinds::VALIDATING_WEBHOOK_CONFIGURATION,
        kinds::MUTATING_WEBHOOK_CONFIGURATION,
        kinds::CUSTOM_RESOURCE_DEFINITION,
    ])
}
