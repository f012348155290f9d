//! The operator's plan for a bundle, after override policies.

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

use crate::commands::cluster::{decode, explain_error};

/// A plan, and the effects of policies on it.
pub(super) struct Overridden {
    pub(super) plan: Plan,
    /// Lines with the policies that override objects, and the ignored ones.
    pub(super) notices: Vec<String>,
    /// Lines with the failed policies.
    pub(super) refusals: Vec<String>,
}

/// Returns the operator's plan for a bundle, with the cluster's policies, and `others`, which replace
/// policies of the same name.
///
/// # Errors
///
/// When the cluster cannot be read, or the bundle cannot be installed with these settings.
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
    // The last policy of a name wins.
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

/// Returns the keys of the bundle's objects for `deployment`.
///
/// # Errors
///
/// When the cluster cannot be read, or the bundle cannot be installed with these settings.
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

/// Lists the cluster's override policies. Unreadable ones are skipped, as the operator does; missing rights
/// to list them are noted.
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
                notices.push(format!("{error}: overrides of {} are not shown", kind.kind));
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

/// Reads the Namespaces of objects, by name.
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
