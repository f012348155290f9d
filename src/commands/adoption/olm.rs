//! Detaches an operator from OLM: [`windlass_adoption::olm`] plans the steps; this module reads the objects
//! and writes them.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use windlass_adoption::{
    ADOPTED_FROM, AdoptionRecord, AdoptionSource, AdoptionStep, AdoptionWrite, RecordedObject,
    olm::{self, CsvObjects, OlmObservation, OlmOperator, OlmState, final_steps, next_steps},
};
use windlass_cluster::{Cluster, Kind, RequestError};
use windlass_object::{ObjectKey, names, object};

use super::super::object_changes::{wait_until, with_key};
use crate::{commands::cluster::explain_error, terminal::Progress};

const CSV: Kind = Kind::new("operators.coreos.com/v1alpha1", "ClusterServiceVersion");
const SUBSCRIPTION: Kind = Kind::new("operators.coreos.com/v1alpha1", "Subscription");
const OPERATOR_GROUP: Kind = Kind::new("operators.coreos.com/v1", "OperatorGroup");

/// The current objects of an operator that OLM runs.
struct OlmObjects {
    csv: Option<Value>,
    csvs: Vec<Value>,
    subscriptions: Vec<Value>,
    operator_groups: Vec<Value>,
    objects: Vec<Value>,
}

/// Returns the objects of a ClusterServiceVersion, and its Subscription.
///
/// # Errors
///
/// When the ClusterServiceVersion does not exist, cannot be read, or cannot be taken over now.
pub(super) async fn objects_of_csv(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Vec<Value>> {
    let seen = OlmObjects::read(cluster, namespace, name).await?;
    let Some(observation) = seen.observation() else {
        bail!(
            "ClusterServiceVersion {namespace}/{name} not found: to list all, run kubectl get csv --all-namespaces"
        );
    };
    check(&observation)?;
    let belongings = observation.csv_objects().chain(observation.subscriptions());
    Ok(belongings.cloned().collect())
}

/// Copies OLM's settings of the operator into a BundleDeployment, except those that it sets itself.
///
/// # Errors
///
/// When the settings cannot be read.
pub(super) async fn complete(
    cluster: &Cluster,
    source: &AdoptionSource,
    deployment: &mut Value,
) -> anyhow::Result<()> {
    let (namespace, name) = namespace_and_name(source);
    let seen = OlmObjects::read(cluster, namespace, name).await?;
    if let Some(observation) = seen.observation() {
        OlmOperator::from_observation(&observation).complete(deployment);
    }
    Ok(())
}

/// Detaches the operator from OLM.
///
/// # Errors
///
/// When OLM's state forbids it, or the cluster rejects a write; the next run resumes there.
pub(super) async fn release(
    cluster: &Cluster,
    source: &AdoptionSource,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let (namespace, name) = namespace_and_name(source);
    wait_until(progress, patience, async || {
        let seen = OlmObjects::read(cluster, namespace, name).await?;
        let Some(observation) = seen.observation() else {
            bail!("ClusterServiceVersion {namespace}/{name} no longer exists");
        };
        match check(&observation)? {
            OlmState::Released => Ok(None),
            OlmState::Waiting(what) => Ok(Some(what)),
            OlmState::Due(steps) => {
                for step in &steps {
                    // Another client changed the object: the next iteration reads it again.
                    if !write(cluster, step).await? {
                        break;
                    }
                }
                Ok(Some(format!("OLM to release {namespace}/{name}")))
            }
        }
    })
    .await
}

/// Returns the objects that OLM created after the adoption was recorded.
///
/// # Errors
///
/// When the objects cannot be read.
pub(super) async fn unrecorded_objects(
    cluster: &Cluster,
    record: &AdoptionRecord,
) -> anyhow::Result<Vec<RecordedObject>> {
    let (namespace, name) = namespace_and_name(&record.source);
    let seen = OlmObjects::read(cluster, namespace, name).await?;
    Ok(olm::unrecorded_objects(record, &seen.objects))
}

/// Removes the marks, and the finalizer of the ClusterServiceVersion.
///
/// # Errors
///
/// When the cluster rejects a write, or other clients change the objects all the time.
pub(super) async fn remove_marks(
    cluster: &Cluster,
    record: &AdoptionRecord,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let (namespace, name) = namespace_and_name(&record.source);
    wait_until(progress, patience, async || {
        let seen = OlmObjects::read(cluster, namespace, name).await?;
        let steps = final_steps(&record.source, seen.csv.as_ref(), &seen.objects);
        for step in &steps {
            // An object that another client changed keeps its mark until the next iteration.
            write(cluster, step).await?;
        }
        Ok((!steps.is_empty()).then(|| format!("the marks of {} to be removed", record.source)))
    })
    .await
}

/// Reports whether OLM still owns everything that it installed.
///
/// # Errors
///
/// When the objects cannot be read.
pub(super) async fn is_untouched(cluster: &Cluster, record: &AdoptionRecord) -> anyhow::Result<bool> {
    let (namespace, name) = namespace_and_name(&record.source);
    let seen = OlmObjects::read(cluster, namespace, name).await?;
    let is_there = |recorded: &RecordedObject| {
        let mut subscriptions = seen.subscriptions.iter();
        subscriptions.any(|live| {
            object::text(live, "/metadata/uid") == recorded.uid() && !object::is_terminating(live)
        })
    };
    let mut subscriptions = record.objects.iter();
    let has_subscriptions =
        subscriptions.all(|recorded| recorded.kind() != SUBSCRIPTION.kind || is_there(recorded));
    let is_marked = |live: &Value| object::annotation(live, ADOPTED_FROM) == Some(&record.source.to_string());
    let has_csv = seen.csv.as_ref().is_some_and(|csv| !object::is_terminating(csv));
    Ok(has_csv && has_subscriptions && !seen.objects.iter().any(is_marked))
}

fn namespace_and_name(source: &AdoptionSource) -> (&str, &str) {
    let name = source.name();
    (name.namespace.as_deref().unwrap_or_default(), &name.name)
}

fn check(observation: &OlmObservation<'_>) -> anyhow::Result<OlmState> {
    let key = ObjectKey::from_object(observation.csv)
        .map(|key| key.to_string())
        .unwrap_or_default();
    next_steps(observation).map_err(|refusals| {
        let refusals: Vec<_> = refusals.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{key} cannot be adopted: {}", refusals.join("; "))
    })
}

/// Writes one step. Returns false if another client changed the object since it was planned.
async fn write(cluster: &Cluster, step: &AdoptionStep) -> anyhow::Result<bool> {
    let Some(key) = step.object() else { return Ok(true) };
    let written = match &step.write {
        AdoptionWrite::Patch { patch, .. } => cluster.patch(&key, patch, names::COMMAND).await.map(drop),
        AdoptionWrite::Delete {
            uid, orphan: true, ..
        } => cluster.orphan(&key, Some(uid)).await,
        AdoptionWrite::Delete { uid, .. } => cluster.delete(&key, Some(uid)).await,
        AdoptionWrite::Create(object) => cluster.create(object, names::COMMAND).await.map(drop),
    };
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.is_invalid() || error.is_conflict() || error.is_not_found() => Ok(false),
        Err(error) => Err(with_key(&key, error)),
    }
}

impl OlmObjects {
    async fn read(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let csvs = list(cluster, &CSV, Some(namespace)).await?;
        let is_it = |csv: &&Value| object::text(csv, "/metadata/name") == Some(name);
        let csv = csvs.iter().find(is_it).cloned();
        let mut objects = Vec::new();
        for (api_version, kind, namespace) in CsvObjects::kinds(namespace) {
            let kind = Kind::new(api_version, kind);
            objects.extend(list(cluster, &kind, namespace).await?);
        }
        Ok(Self {
            csv,
            csvs,
            subscriptions: list(cluster, &SUBSCRIPTION, Some(namespace)).await?,
            operator_groups: list(cluster, &OPERATOR_GROUP, Some(namespace)).await?,
            objects,
        })
    }

    fn observation(&self) -> Option<OlmObservation<'_>> {
        Some(OlmObservation {
            csv: self.csv.as_ref()?,
            csvs: &self.csvs,
            all_subscriptions: &self.subscriptions,
            operator_groups: &self.operator_groups,
            objects: &self.objects,
        })
    }
}

async fn list(cluster: &Cluster, kind: &Kind, namespace: Option<&str>) -> anyhow::Result<Vec<Value>> {
    match cluster.list(kind, namespace, None).await {
        // A cluster may lack a kind of OLM or Kubernetes.
        Err(RequestError::UnknownKind { .. }) => Ok(Vec::new()),
        listed => listed.map_err(explain_error),
    }
}
