//! The plan that the operator makes of a bundle, as policies have it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::anyhow;
use policy::{CompiledPolicy, Engines, PolicySet};
use serde_json::Value;
use windlass_api::BundleDeployment;
use windlass_bundle::{Bundle, render::render};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{ObjectKey, object};
use windlass_operator::install::{
    overrides::{OverrideDecision, apply, decide, namespace_as_seen},
    plan::Plan,
    revision::InstallSettings,
};

use crate::commands::cluster::{explain_error, decode};

/// A plan, and what policies have done to it.
pub(super) struct Overridden {
    pub(super) plan: Plan,
    /// Which policy overrides what, and which ones are ignored.
    pub(super) notices: Vec<String>,
    /// Which ones fail.
    pub(super) refusals: Vec<String>,
}

/// The plan that the operator makes of a bundle, with the policies that the cluster has, and `others` in place of those of the same
/// name.
///
/// # Errors
///
/// When the cluster cannot be asked, or the bundle cannot be installed so.
pub(super) async fn overridden_plan(
    cluster: &Cluster,
    bundle: &Bundle,
    deployment: &BundleDeployment,
    others: &[Arc<CompiledPolicy>],
) -> anyhow::Result<Overridden> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let options = InstallSettings::of(&deployment.spec)
        .options()
        .map_err(|problems| anyhow!("{}", problems[0]))?;
    let mut rendered = render(bundle, &options).map_err(|errors| anyhow!("{}", errors[0]))?;
    let mut notices = Vec::new();
    let of_cluster = list_policies(cluster, &mut notices).await?;
    // Of several with one key the last counts.
    let policies = PolicySet::new(of_cluster.into_iter().chain(others.iter().cloned()));
    let mut refusals = Vec::new();
    let mut decision = OverrideDecision::default();
    if policies.policies().next().is_some() {
        let namespaces = read_namespaces(cluster, &rendered.objects).await?;
        match decide(&rendered, &policies, &namespaces) {
            Ok(decided) => decision = decided,
            Err(problems) => refusals.extend(problems.iter().map(ToString::to_string)),
        }
    }
    apply(&mut rendered.objects, &decision.overrides)?;
    Ok(Overridden {
        plan: Plan::new(rendered, bundle.csv(), name, options.config.serving),
        notices: decision.notices.into_iter().chain(notices).collect(),
        refusals,
    })
}

/// The objects that a bundle brings along, for `deployment` as it would be.
///
/// # Errors
///
/// When the cluster cannot be asked, or the bundle cannot be installed so.
pub(in super::super) async fn planned_objects(
    cluster: &Cluster,
    bundle: &Bundle,
    deployment: &Value,
) -> anyhow::Result<Vec<ObjectKey>> {
    let deployment: BundleDeployment = decode(deployment.clone())?;
    let plan = overridden_plan(cluster, bundle, &deployment, &[]).await?.plan;
    let greens: Vec<_> = plan.green_services().collect();
    let objects = plan.phases.all().chain(&greens);
    Ok(objects.filter_map(ObjectKey::from_object).collect())
}

/// The override policies of the cluster. Of those that cannot be read none is asked, as by the operator; those that may not be listed
/// are noted.
async fn list_policies(
    cluster: &Cluster,
    notices: &mut Vec<String>,
) -> anyhow::Result<Vec<Arc<CompiledPolicy>>> {
    let engines = Engines::built_in();
    let mut policies = Vec::new();
    for kind in [kinds::CLUSTER_OVERRIDE_POLICY, kinds::OVERRIDE_POLICY] {
        if !cluster.serves(&kind).await.map_err(explain_error)? {
            continue;
        }
        let listed = match cluster.list(&kind, None, None).await {
            Ok(listed) => listed,
            Err(error) if error.is_forbidden() => {
                notices.push(format!("{error}: what {} would override is not shown", kind.kind));
                continue;
            }
            Err(error) => return Err(explain_error(error)),
        };
        let compiled = listed
            .iter()
            .filter_map(|policy| CompiledPolicy::compile(policy, &engines).ok());
        policies.extend(compiled.map(Arc::new));
    }
    Ok(policies)
}

/// The Namespaces that objects are in, by name.
async fn read_namespaces(cluster: &Cluster, objects: &[Value]) -> anyhow::Result<BTreeMap<String, Value>> {
    let names: BTreeSet<_> = objects
        .iter()
        .filter_map(|object| object::text(object, "/metadata/namespace"))
        .collect();
    let mut namespaces = BTreeMap::new();
    for name in names {
        let live = cluster.read(&kinds::NAMESPACE.object(None, name)).await;
        let live = live.map_err(explain_error)?;
        namespaces.insert(name.to_owned(), namespace_as_seen(name, live.as_ref()));
    }
    Ok(namespaces)
}
