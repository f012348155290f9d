//! OLM v0: the steps by which olm-operator releases an operator that is in use.
//!
//! OLM does nothing for a ClusterServiceVersion that is being deleted, except what its finalizer does: it
//! deletes the cluster-scoped objects that have its labels. The garbage collector deletes the others, unless
//! the deletion orphans them. After the ClusterServiceVersion is gone, OLM resets the conversion of the CRDs
//! in its webhook definitions to `None`. So the steps are:
//!
//! | # | write | OLM, if interrupted here |
//! |---|---|---|
//! | 1 | the Subscriptions are deleted | continues, but does not upgrade |
//! | 2 | its objects are marked; cluster-scoped objects lose the labels of their owner | at most creates other webhook configurations |
//! | 3 | the ClusterServiceVersion gets a finalizer of Windlass | continues |
//! | 4 | it is deleted, and its objects are orphaned | does nothing: it has a deletionTimestamp |
//! | 5 | its webhook definitions are removed | does nothing |
//! | 6 | the Secrets with its certificates are labelled as Windlass's | does nothing |
//! | 7 | the bundle is installed, and adopts the objects of the same names | does nothing |
//! | 8 | objects of OLM that the bundle lacks are deleted | does nothing |
//! | 9 | the finalizer is removed, and the ClusterServiceVersion is gone | finds no webhook definition whose conversion to reset |
//!
//! Until step 4 everything can be undone. After it the operator runs as before, without OLM. Step 5 waits for
//! step 4, since OLM would otherwise remove the certificates from the pods.

mod csv_objects;
mod observation;
mod operator;
mod refusal;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use windlass_object::{ObjectKey, names, object, patch};

use crate::{ADOPTED_FROM, ADOPTION_FINALIZER, AdoptionStep, AdoptionWrite, step};

pub use self::{
    csv_objects::{CLUSTER_SCOPED, CsvObjects},
    observation::OlmObservation,
    operator::OlmOperator,
    refusal::OlmRefusal,
};

/// The finalizer of OLM, which it removes after it has observed the deletion of a ClusterServiceVersion.
pub const OLM_FINALIZER: &str = "operators.coreos.com/csv-cleanup";

/// The finalizer that makes the garbage collector orphan dependents.
const ORPHAN: &str = "orphan";

/// The labels that name the owner of a cluster-scoped object.
const OWNER_LABELS: [&str; 3] = ["olm.owner", "olm.owner.namespace", "olm.owner.kind"];

/// The progress of OLM's release of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum OlmState {
    /// These writes are next, in this order; then observe again.
    Due(Vec<AdoptionStep>),
    /// No write is due, but another component has to act; with a message.
    Waiting(String),
    /// The bundle can be installed, and adopt the objects of the ClusterServiceVersion.
    Released,
}

/// Returns the next steps before the bundle is installed.
///
/// # Errors
///
/// Why the operator cannot be taken over. Nothing may be written then.
pub fn next_steps(observation: &OlmObservation<'_>) -> Result<OlmState, Vec<OlmRefusal>> {
    let csv = observation.csv;
    if object::is_terminating(csv) {
        if !object::finalizers(csv).contains(&ADOPTION_FINALIZER) {
            return Err(vec![OlmRefusal::Deleted]);
        }
        return Ok(steps_after_deletion(csv, observation.objects));
    }
    let refusals = refusal::refusals(observation);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let subscriptions: Vec<_> = observation
        .subscriptions()
        .filter(|subscription| !object::is_terminating(subscription))
        .filter_map(|subscription| AdoptionStep::delete(subscription, "stops upgrades by OLM"))
        .collect();
    // Whether OLM has begun an upgrade is certain only after the Subscriptions are deleted.
    if !subscriptions.is_empty() {
        return Ok(OlmState::Due(subscriptions));
    }
    if observation.subscriptions().next().is_some() {
        return Ok(OlmState::Waiting(
            "waiting for the deletion of the Subscription".to_owned(),
        ));
    }
    let mut steps: Vec<_> = observation
        .csv_objects()
        .filter_map(|live| mark(csv, live))
        .collect();
    steps.extend(add_finalizer(csv));
    steps.extend(delete_csv(csv));
    Ok(OlmState::Due(steps))
}

/// Returns the steps after all objects of the bundle are adopted and healthy. `kept` are the objects of the
/// bundle.
pub fn final_steps(csv: &Value, objects: &[Value], kept: &[ObjectKey]) -> Vec<AdoptionStep> {
    let origin = origin(csv);
    let is_kept = |live: &Value| {
        let key = ObjectKey::from_object(live);
        key.is_none_or(|key| kept.iter().any(|kept| kept.is_same_object(&key)))
            || object::label(live, names::BUNDLE_DEPLOYMENT).is_some()
            || object::label(live, names::SERVING_CERTIFICATE).is_some()
            || csv_objects::is_crd(live)
    };
    let marked = objects
        .iter()
        .filter(|live| object::annotation(live, ADOPTED_FROM) == Some(&origin));
    let (kept, left): (Vec<_>, Vec<_>) = marked.partition(|live| is_kept(live));
    let left = left
        .into_iter()
        .filter(|live| !object::is_terminating(live))
        .filter_map(|live| AdoptionStep::delete(live, "is not in the bundle"));
    let labels = step::removals(&[&OWNER_LABELS[..], &["olm.managed"]].concat());
    let annotations = step::removals(&[ADOPTED_FROM]);
    let unmarked = kept
        .into_iter()
        .filter_map(|live| AdoptionStep::relabel(live, &labels, &annotations, "is Windlass's"));
    left.chain(unmarked).chain(remove_finalizer(csv)).collect()
}

/// Returns the owner in the syntax of `--adopt-from`, with the namespace.
fn origin(csv: &Value) -> String {
    let text = |path| object::text(csv, path).unwrap_or_default();
    format!("olm/{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

/// Marks an object of `csv`, so that it can be found without OLM's labels, and removes the labels that OLM's
/// finalizer deletes by. Callers of webhooks get Windlass's CA as soon as its certificates are served.
fn mark(csv: &Value, live: &Value) -> Option<AdoptionStep> {
    let is_cleaned = CLUSTER_SCOPED
        .iter()
        .any(|(_, kind)| object::text(live, "/kind") == Some(kind));
    let labels = match is_cleaned {
        true => step::removals(&OWNER_LABELS),
        false => json!({}),
    };
    let mut annotations = json!({ADOPTED_FROM: origin(csv)});
    if let Some(called) = csv_objects::only_called_service(live) {
        annotations[names::INJECT_CA_FROM] = called.into();
    }
    AdoptionStep::relabel(live, &labels, &annotations, "prevents its deletion by OLM")
}

/// Adds the finalizer that keeps OLM from handling the deletion of the ClusterServiceVersion.
fn add_finalizer(csv: &Value) -> Option<AdoptionStep> {
    let finalizers = object::finalizers(csv);
    if finalizers.contains(&ADOPTION_FINALIZER) {
        return None;
    }
    let held: Vec<_> = finalizers.iter().copied().chain([ADOPTION_FINALIZER]).collect();
    Some(AdoptionStep {
        write: finalizers_patch(csv, &held)?,
        undo: None,
        reason: "stays until Windlass has taken over all of its objects",
    })
}

fn delete_csv(csv: &Value) -> Option<AdoptionStep> {
    Some(AdoptionStep {
        write: AdoptionWrite::Delete {
            object: ObjectKey::from_object(csv)?,
            uid: object::text(csv, "/metadata/uid")?.to_owned(),
            orphan: true,
        },
        undo: None,
        reason: "ends its management by OLM; its objects stay",
    })
}

/// Returns the next steps for a ClusterServiceVersion that is being deleted.
fn steps_after_deletion(csv: &Value, objects: &[Value]) -> OlmState {
    let definitions = ["/spec/webhookdefinitions", "/spec/apiservicedefinitions"];
    let there: Vec<_> = definitions
        .into_iter()
        .filter(|path| csv.pointer(path).is_some())
        .collect();
    if let Some(object) = ObjectKey::from_object(csv).filter(|_| !there.is_empty()) {
        let mut operations = vec![patch::test("/metadata/uid", &csv["metadata"]["uid"])];
        let is_deleted = object::at(csv, "/metadata/deletionTimestamp")
            .cloned()
            .unwrap_or_default();
        operations.push(patch::test("/metadata/deletionTimestamp", &is_deleted));
        operations.extend(there.into_iter().map(patch::remove));
        let write = AdoptionWrite::Patch {
            object,
            patch: json_patch::Patch(operations),
        };
        return OlmState::Due(vec![AdoptionStep {
            write,
            undo: None,
            reason: "prevents OLM from resetting conversions",
        }]);
    }
    // OLM and the garbage collector remove their finalizers only after they have finished earlier writes.
    for (finalizer, whom) in [(OLM_FINALIZER, "olm-operator"), (ORPHAN, "the garbage collector")] {
        if object::finalizers(csv).contains(&finalizer) {
            return OlmState::Waiting(format!(
                "waiting for {whom} to process the deletion of {}: check that it is running",
                ObjectKey::from_object(csv)
                    .map(|key| key.to_string())
                    .unwrap_or_default()
            ));
        }
    }
    let handed_over: Vec<_> = objects
        .iter()
        .filter_map(|live| hand_over_secret(csv, live))
        .collect();
    match handed_over.is_empty() {
        true => OlmState::Released,
        false => OlmState::Due(handed_over),
    }
}

/// Allows Windlass to write the Secret that the pods mount.
fn hand_over_secret(csv: &Value, live: &Value) -> Option<AdoptionStep> {
    let is_marked = object::annotation(live, ADOPTED_FROM) == Some(&origin(csv));
    let service = csv_objects::service_of_secret(live).filter(|_| is_marked)?;
    let labels = json!({names::SERVING_CERTIFICATE: service});
    AdoptionStep::relabel(
        live,
        &labels,
        &json!({}),
        "allows Windlass to renew the certificate",
    )
}

fn remove_finalizer(csv: &Value) -> Option<AdoptionStep> {
    let finalizers = object::finalizers(csv);
    if !finalizers.contains(&ADOPTION_FINALIZER) {
        return None;
    }
    let left: Vec<_> = finalizers
        .into_iter()
        .filter(|one| *one != ADOPTION_FINALIZER)
        .collect();
    Some(AdoptionStep {
        write: finalizers_patch(csv, &left)?,
        undo: None,
        reason: "has no objects left",
    })
}

fn finalizers_patch(csv: &Value, finalizers: &[&str]) -> Option<AdoptionWrite> {
    let version = ("/metadata/resourceVersion", &csv["metadata"]["resourceVersion"]);
    Some(AdoptionWrite::Patch {
        object: ObjectKey::from_object(csv)?,
        patch: patch::guarded(&[version], "/metadata/finalizers", &json!(finalizers)),
    })
}
