//! `windlass adoption confirm`: makes an adoption permanent and removes the remaining objects.

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

const AFTER_HELP: &str =
    "Keeps CRDs, namespaces, volumes, APIServices, Secrets that pods use, and Services that are still
called.";

/// Removes the remaining objects of an adoption, and the record of the previous state.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Only show what would be removed and kept.
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

/// The remaining objects of an adoption, by what happens to them.
#[derive(Debug, Default)]
struct Leftovers<'a> {
    /// Objects that call webhooks; removed first.
    callers: Vec<&'a RecordedObject>,
    /// All other objects to remove, in order.
    others: Vec<&'a RecordedObject>,
    /// Objects that are kept, with the reason.
    kept: Vec<String>,
}

/// Kinds that are never deleted, since that would delete other objects or data.
const PRECIOUS: [&str; 5] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "APIService",
];

/// Helm's annotation on objects that outlive their release.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

impl Args {
    /// Confirms the adoption.
    ///
    /// # Errors
    ///
    /// When the BundleDeployment is not ready, or an object cannot be removed.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let namespace = &self.operator.operator_namespace;
        let mut record = records::require(&cluster, namespace, &self.name).await?;
        if let AdoptionSource::Olm(_) = record.source {
            let unrecorded = olm::unrecorded_objects(&cluster, &record).await?;
            record.objects.extend(unrecorded);
        }
        ensure_ready(&cluster, &record).await?;
        let leftovers = Leftovers::find(&cluster, &record).await?;
        if self.dry_run {
            for removed in leftovers
                .callers
                .iter()
                .chain(&leftovers.others)
                .filter_map(|recorded| recorded.key())
            {
                println!("Would remove {}", OneLine(&removed.to_string()));
            }
            leftovers
                .kept
                .iter()
                .for_each(|kept| println!("Would keep {}", OneLine(kept)));
            return Ok(ExitCode::SUCCESS);
        }
        let mut progress = Progress::new(ProgressFormat::Text);
        let patience = self.timeout.0.unsigned_abs();
        leftovers
            .remove(&cluster, &record, &mut progress, patience)
            .await?;
        if let AdoptionSource::Helm(_) = record.source {
            for secret in releases(&cluster, record.source.name(), true).await? {
                if let Some(key) = ObjectKey::from_object(&secret) {
                    delete(&cluster, &key, object::text(&secret, "/metadata/uid")).await?;
                }
            }
        }
        if let AdoptionSource::Olm(_) = record.source {
            olm::remove_marks(&cluster, &record, &mut progress, patience).await?;
        }
        records::delete(&cluster, namespace, &self.name).await?;
        drop(progress);
        println!("The adoption of {} is confirmed", self.name);
        if !leftovers.kept.is_empty() {
            println!("Kept:");
        }
        leftovers
            .kept
            .iter()
            .for_each(|kept| println!("  {}", OneLine(kept)));
        Ok(ExitCode::SUCCESS)
    }
}

/// Checks that no adopted object calls the old servers.
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
            bail!(
                "{key} does not belong to the BundleDeployment {name}: run windlass install --adopt-from again"
            );
        }
    }
    Ok(())
}

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
                    "{key} is not in the bundle, but calls servers that would be removed: delete it if it is not needed, or \
                     go back with windlass adoption undo {}",
                    record.bundle_deployment
                );
            }
            if PRECIOUS.contains(&recorded.kind()) {
                leftovers
                    .kept
                    .push(format!("{key}: deleting it would delete other objects or data"));
            } else if object::annotation(&recorded.object, RESOURCE_POLICY) == Some("keep") {
                leftovers
                    .kept
                    .push(format!("{key}: annotated {RESOURCE_POLICY}=keep"));
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
        for service in record.narrowed_services().filter(|service| !service.is_adopted()) {
            let Some(key) = service.key() else { continue };
            if called.contains(&(key.namespace.clone().unwrap_or_default(), key.name.clone())) {
                bail!(
                    "{key} is still called by an object outside of this adoption: point that object to another Service first"
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
                "Service" if called.contains(&place) => "it is still called",
                "Service" if is_used => "a pod uses the Secret that service-ca writes for it",
                "Certificate" if asked.contains(&*format!("{}/{}", place.0, place.1)) => {
                    "an object still requests its CA"
                }
                "Certificate" if is_used => "a pod uses its Secret",
                _ => return true,
            };
            kept.push(format!("{key}: {reason}"));
            false
        });
        leftovers
            .others
            .sort_by_key(|recorded| std::cmp::Reverse(Phase::for_kind(recorded.kind())));
        // Callers are deleted first, then the Services that they called, then the servers.
        leftovers
            .others
            .sort_by_key(|recorded| recorded.kind() != "Service");
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
        if !self.callers.is_empty() || record.kept_deployments().next().is_some() {
            wait_for_propagation(progress, "that the old Services have no callers").await;
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

/// Returns the Secrets, by namespace and name, of pods that are not removed.
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

/// Collects the names of Secrets anywhere in a pod spec: `secretName`, and `name` below `secret…` and
/// `imagePullSecrets`.
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

/// Returns the values of the callers' CA injection annotations.
fn ca_sources(callers: &[Value]) -> BTreeSet<&str> {
    let injectors = |caller| {
        CA_INJECTORS
            .iter()
            .filter_map(move |injector| object::annotation(caller, injector))
    };
    callers.iter().flat_map(injectors).collect()
}

/// Returns all objects that can call webhooks, except `going`.
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
    fn every_secret_reference_of_a_pod_is_found() {
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
