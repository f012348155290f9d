//! `windlass adoption confirm`: there is no way back any more, and nothing is left over.

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use anyhow::bail;
use serde_json::Value;
use windlass_adoption::{AdoptionRecord, AdoptionSource, CA_INJECTORS, RecordedObject, called_services};
use windlass_bundle::Phase;
use windlass_cluster::{Cluster, RequestError, kinds};
use windlass_object::{GoDuration, ObjectKey, names, object, text::OneLine};

use super::{
    super::object_changes::{delete, wait_for_propagation},
    issued_certificates::serving_secret,
    olm, records, servers,
    source_objects::releases,
};
use crate::{
    commands::{
        arguments,
        cluster::{ClusterArgs, OperatorArgs, explain_error},
        wait::condition,
    },
    terminal::{Progress, ProgressFormat},
};

/// Removes what an adoption has left over, and the record of how everything was before.
///
/// Keeps CustomResourceDefinitions, namespaces, volumes, APIServices, Secrets that pods use, and Services that something still
/// calls.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Only show what would be removed and what would be kept.
    #[arg(long)]
    dry_run: bool,

    /// Maximum time to wait.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    timeout: GoDuration,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What becomes of what is left over.
#[derive(Debug, Default)]
struct Leftovers<'a> {
    /// It calls webhooks, and goes first.
    callers: Vec<&'a RecordedObject>,
    /// Everything else that goes, last to first.
    others: Vec<&'a RecordedObject>,
    /// What stays, and why.
    kept: Vec<String>,
}

/// Kinds of which nothing is deleted: with an object of them goes more than that.
const PRECIOUS: [&str; 5] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "APIService",
];

/// Helm's annotation on what is not to go with its release.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

// === impl Args ===

impl Args {
    /// Removes it.
    ///
    /// # Errors
    ///
    /// When the BundleDeployment is not ready, or something cannot be removed.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let namespace = &self.operator.operator_namespace;
        let record = records::require(&cluster, namespace, &self.name).await?;
        ensure_ready(&cluster, &record).await?;
        let leftovers = Leftovers::find(&cluster, &record).await?;
        if self.dry_run {
            for removed in rest
                .callers
                .iter()
                .chain(&leftovers.others)
                .filter_map(|recorded| recorded.key())
            {
                println!("Would remove {}", OneLine(&removed.to_string()));
            }
            leftovers.kept
                .iter()
                .for_each(|kept| println!("Would keep {}", OneLine(kept)));
            return Ok(ExitCode::SUCCESS);
        }
        let mut progress = Progress::new(ProgressFormat::Text);
        let patience = self.timeout.0.unsigned_abs();
        leftovers.remove(&cluster, &record, &mut progress, patience).await?;
        if let AdoptionSource::Helm(_) = record.source {
            for secret in releases(&cluster, record.source.name(), true).await? {
                if let Some(key) = ObjectKey::from_object(&secret) {
                    delete(&cluster, &key, object::text(&secret, "/metadata/uid")).await?;
                }
            }
        }
        if let AdoptionSource::Olm(_) = record.source {
            olm::remove_marks(&cluster, &record).await?;
        }
        records::delete(&cluster, namespace, &self.name).await?;
        drop(progress);
        println!("{} is adopted for good", self.name);
        if !leftovers.kept.is_empty() {
            println!("Kept:");
        }
        leftovers.kept.iter().for_each(|kept| println!("  {}", OneLine(kept)));
        Ok(ExitCode::SUCCESS)
    }
}

/// Sees to it that nothing adopted calls the old servers.
async fn ensure_ready(cluster: &Cluster, record: &AdoptionRecord) -> anyhow::Result<()> {
    let name = &record.bundle_deployment;
    let key = kinds::BUNDLE_DEPLOYMENT.object(None, name);
    let Some(deployment) = cluster.read(&key).await.map_err(explain_error)? else {
        bail!("{key} not found: to go back, run windlass adoption undo {name}");
    };
    if condition(&deployment, "Ready").is_none_or(|ready| ready.status != "True") {
        bail!(
            "{key} is not ready, see windlass status {name}; to go back, run windlass adoption undo {name}"
        );
    }
    for caller in record.callers().filter(|caller| caller.is_adopted()) {
        let Some(key) = caller.key() else { continue };
        let Some(live) = cluster.read(&key).await.map_err(explain_error)? else {
            continue;
        };
        if object::label(&live, names::BUNDLE_DEPLOYMENT) != Some(name) {
            bail!("{key} is not of the BundleDeployment {name}: run windlass install --adopt-from again");
        }
    }
    Ok(())
}

// === impl Leftovers ===

impl<'a> Leftovers<'a> {
    async fn find(cluster: &Cluster, record: &'a AdoptionRecord) -> anyhow::Result<Self> {
        let mut leftovers = Self::default();
        let left_over = record.objects.iter().filter(|recorded| !recorded.is_adopted());
        let mut going = BTreeSet::new();
        for recorded in left_over {
            let Some(key) = recorded.key() else { continue };
            let live = match cluster.read(&key).await {
                Err(RequestError::UnknownKind { .. }) => None,
                read => read.map_err(explain_error)?,
            };
            let is_same = |live: &Value| object::text(live, "/metadata/uid") == recorded.uid();
            if !live.as_ref().is_some_and(is_same) {
                continue;
            }
            if PRECIOUS.contains(&recorded.kind()) && !called_services(&recorded.object).is_empty() {
                bail!(
                    "{key} is not in the bundle, and calls what is left over, which cannot go: delete it first if nobody needs it, or \
                     go back with windlass adoption undo {}",
                    record.bundle_deployment
                );
            }
            if PRECIOUS.contains(&recorded.kind()) {
                leftovers.kept.push(format!("{key}: more than that would go with it"));
            } else if object::annotation(&recorded.object, RESOURCE_POLICY) == Some("keep") {
                leftovers.kept.push(format!("{key}: {RESOURCE_POLICY} says so"));
            } else if called_services(&recorded.object).is_empty() {
                leftovers.others.push(recorded);
            } else {
                going.insert(key);
                leftovers.callers.push(recorded);
            }
        }
        let used = used_secrets(cluster, record).await?;
        let callers = remaining_callers(cluster, &going).await?;
        let called: BTreeSet<_> = callers.iter().flat_map(called_services).collect();
        for service in record.narrowed().filter(|service| !service.is_adopted()) {
            let Some(key) = service.key() else { continue };
            if called.contains(&(key.namespace.clone().unwrap_or_default(), key.name.clone())) {
                bail!(
                    "{key} is still called by something that is neither adopted nor left over: let that call another Service first"
                );
            }
        }
        let asked = ca_sources(&callers);
        let kept = &mut leftovers.kept;
        leftovers.others.retain(|recorded| {
            let Some(key) = recorded.key() else { return false };
            let place = (key.namespace.clone().unwrap_or_default(), key.name.clone());
            let secret = object::text(&recorded.object, "/spec/secretName");
            let secret = secret
                .or_else(|| serving_secret(&recorded.object))
                .unwrap_or_default();
            let is_used = used.contains(&(place.0.clone(), secret.to_owned()));
            let reason = match recorded.kind() {
                "Secret" if used.contains(&place) => "a pod uses it",
                "Service" if called.contains(&place) => "something still calls it",
                "Service" if is_used => "a pod uses the Secret that service-ca writes for it",
                "Certificate" if asked.contains(&*format!("{}/{}", place.0, place.1)) => {
                    "something still asks for its CA"
                }
                "Certificate" if is_used => "a pod uses its Secret",
                _ => return true,
            };
            kept.push(format!("{key}: {reason}"));
            false
        });
        leftovers.others
            .sort_by_key(|recorded| std::cmp::Reverse(Phase::for_kind(recorded.kind())));
        // Who calls goes first, then where they called, and only then who answered.
        leftovers.others.sort_by_key(|recorded| recorded.kind() != "Service");
        Ok(leftovers)
    }

    async fn remove(
        &self,
        cluster: &Cluster,
        record: &AdoptionRecord,
        progress: &mut Progress,
        patience: Duration,
    ) -> anyhow::Result<()> {
        for caller in &self.callers {
            if let Some(key) = caller.key() {
                delete(cluster, &key, caller.uid()).await?;
                progress.done(&format!("Removed {key}"));
            }
        }
        if !self.callers.is_empty() || record.kept().next().is_some() {
            wait_for_propagation(progress, "that nobody calls the old Services").await;
        }
        let (services, others): (Vec<&RecordedObject>, Vec<_>) = self
            .others
            .iter()
            .partition(|recorded| recorded.kind() == "Service");
        for service in services {
            if let Some(key) = service.key() {
                delete(cluster, &key, service.uid()).await?;
                progress.done(&format!("Removed {key}"));
            }
        }
        servers::remove_copies(cluster, record, progress, patience).await?;
        for recorded in others {
            if let Some(key) = recorded.key() {
                delete(cluster, &key, recorded.uid()).await?;
                progress.done(&format!("Removed {key}"));
            }
        }
        Ok(())
    }
}

/// The Secrets, by namespace and name, that pods use which stay.
async fn used_secrets(
    cluster: &Cluster,
    record: &AdoptionRecord,
) -> anyhow::Result<BTreeSet<(String, String)>> {
    let places = record.objects.iter().filter_map(RecordedObject::key);
    let namespaces: BTreeSet<_> = places.filter_map(|key| key.namespace).collect();
    let mut used = BTreeSet::new();
    for namespace in namespaces {
        let pods = cluster
            .list(&kinds::POD, Some(&namespace), None)
            .await
            .map_err(explain_error)?;
        let stays = |pod: &&Value| object::label(pod, names::KEPT_FOR) != Some(&record.bundle_deployment);
        for pod in pods.iter().filter(stays) {
            let mut names = BTreeSet::new();
            secret_names(&pod["spec"], &mut names);
            used.extend(names.into_iter().map(|name| (namespace.clone(), name)));
        }
    }
    Ok(used)
}

/// The names of Secrets anywhere in the spec of a pod: `secretName`, and `name` below `secret…` and `imagePullSecrets`.
fn secret_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if field == "secretName" {
                    names.extend(value.as_str().map(str::to_owned));
                }
                if field.starts_with("secret") {
                    names.extend(object::text(value, "/name").map(str::to_owned));
                }
                if field == "imagePullSecrets" {
                    let items = value.as_array().into_iter().flatten();
                    names.extend(items.filter_map(|item| object::text(item, "/name").map(str::to_owned)));
                }
                secret_names(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| secret_names(item, names)),
        _ => {}
    }
}

/// What callers ask other programs for.
fn ca_sources(callers: &[Value]) -> BTreeSet<&str> {
    let injectors = |caller| {
        CA_INJECTORS
            .iter()
            .filter_map(move |injector| object::annotation(caller, injector))
    };
    callers.iter().flat_map(injectors).collect()
}

/// Whatever may call webhooks and stays.
async fn remaining_callers(cluster: &Cluster, going: &BTreeSet<ObjectKey>) -> anyhow::Result<Vec<Value>> {
    let mut callers = Vec::new();
    for kind in kinds::CALLERS {
        let listed = cluster.list(&kind, None, None).await.map_err(explain_error)?;
        callers.extend(
            listed
                .into_iter()
                .filter(|caller| ObjectKey::from_object(caller).is_none_or(|key| !going.contains(&key))),
        );
    }
    Ok(callers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_in_which_a_pod_uses_a_secret_is_seen() {
        let spec = json!({
            "imagePullSecrets": [{"name": "a"}],
            "volumes": [
                {"name": "no", "secret": {"secretName": "b"}},
                {"name": "no", "projected": {"sources": [{"secret": {"name": "c"}}]}},
                {"name": "no", "configMap": {"name": "no"}},
            ],
            "containers": [{"name": "no", "env": [{"name": "no", "valueFrom": {"secretKeyRef": {"name": "d", "key": "no"}}}],
                "envFrom": [{"secretRef": {"name": "e"}}]}],
        });
        let mut names = BTreeSet::new();
        secret_names(&spec, &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    }
}
