//! OLM v0: how its olm-operator lets go of an operator that goes on being called.
//!
//! OLM does nothing for a ClusterServiceVersion that is being deleted, but what its finalizer does: delete the cluster-scoped objects
//! that have its labels. The garbage collector takes the others, unless the deletion says that they stay. And when the
//! ClusterServiceVersion is gone, OLM sets the conversion of the CRDs to `None` that its definitions name. So:
//!
//! | # | write | OLM, if this is the last |
//! |---|---|---|
//! | 1 | the Subscriptions are deleted | goes on, but upgrades nothing |
//! | 2 | what belongs to it is marked; cluster-scoped objects lose the labels of their owner | at the most creates other webhook configurations |
//! | 3 | the ClusterServiceVersion gets a finalizer of Windlass's | goes on |
//! | 4 | it is deleted, and what it owns stays | does nothing more: it has a deletionTimestamp |
//! | 5 | its definitions of webhooks are taken away | does nothing more |
//! | 6 | the Secrets with its certificates are labelled as Windlass's | does nothing more |
//! | 7 | the bundle is installed, and adopts what has names of its own | does nothing more |
//! | 8 | what was OLM's and is not the bundle's is deleted | does nothing more |
//! | 9 | the finalizer is taken away, and the ClusterServiceVersion is gone | finds no definition of a conversion to reset |
//!
//! Until 4 all of it can be taken back. After 4 the operator runs as before, without OLM. 5 waits for 4, since OLM would
//! otherwise take the certificates from the pods.

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

/// The finalizer of OLM, which it takes away when it has seen that a ClusterServiceVersion is deleted.
pub const OLM_FINALIZER: &str = "operators.coreos.com/csv-cleanup";

/// The finalizer by which the garbage collector takes the owner from what stays.
const ORPHAN: &str = "orphan";

/// The labels by which OLM knows whose a cluster-scoped object is.
const OWNER_LABELS: [&str; 3] = ["olm.owner", "olm.owner.namespace", "olm.owner.kind"];

/// How far OLM is from having let go.
#[derive(Clone, Debug, PartialEq)]
pub enum OlmState {
    /// These writes are next, in this order; then look again.
    Due(Vec<AdoptionStep>),
    /// Nothing is to be written, but something is to come.
    Waiting(String),
    /// The bundle can be installed, and adopt what belonged to the ClusterServiceVersion.
    Released,
}

/// What is next before the bundle is installed.
///
/// # Errors
///
/// What speaks against taking the operator over. Nothing is to be written then.
pub fn next_steps(observation: &OlmObservation<'_>) -> Result<OlmState, Vec<OlmRefusal>> {
    let csv = observation.csv;
    if object::is_terminating(csv) {
        if !object::finalizers(csv).contains(&ADOPTION_FINALIZER) {
            return Err(vec![OlmRefusal::Deleted]);
        }
        return Ok(deleted(csv, observation.objects));
    }
    let refusals = refusal::refusals(observation);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let subscriptions: Vec<_> = observation
        .subscriptions()
        .filter(|subscription| !object::is_terminating(subscription))
        .filter_map(|subscription| AdoptionStep::delete(subscription, "upgrades nothing any more"))
        .collect();
    // Whether OLM has begun an upgrade shows only when nothing more is asked of it.
    if !subscriptions.is_empty() {
        return Ok(OlmState::Due(subscriptions));
    }
    if observation.subscriptions().next().is_some() {
        return Ok(OlmState::Waiting(
            "waiting for the Subscription to be gone".to_owned(),
        ));
    }
    let mut steps: Vec<_> = observation
        .belongings()
        .filter_map(|live| mark(csv, live))
        .collect();
    steps.extend(hold(csv));
    steps.extend(delete(csv));
    Ok(OlmState::Due(steps))
}

/// What is left to be written when everything that the bundle has is adopted and works. `kept` are the objects of the bundle.
pub fn finish(csv: &Value, objects: &[Value], kept: &[ObjectKey]) -> Vec<AdoptionStep> {
    let origin = origin(csv);
    let is_kept = |live: &Value| {
        let key = ObjectKey::from_object(live);
        key.is_none_or(|key| kept.iter().any(|kept| kept.is_same_object(&key)))
            || object::label(live, names::BUNDLE_DEPLOYMENT).is_some()
            || object::label(live, names::SERVING_CERTIFICATE).is_some()
            || csv_objects::is_definition(live)
    };
    let marked = objects
        .iter()
        .filter(|live| object::annotation(live, ADOPTED_FROM) == Some(&origin));
    let (kept, left): (Vec<_>, Vec<_>) = marked.partition(|live| is_kept(live));
    let left = left
        .into_iter()
        .filter(|live| !object::is_terminating(live))
        .filter_map(|live| AdoptionStep::delete(live, "is not the bundle's"));
    let labels = step::without(&[&OWNER_LABELS[..], &["olm.managed"]].concat());
    let annotations = step::without(&[ADOPTED_FROM]);
    let unmarked = kept
        .into_iter()
        .filter_map(|live| AdoptionStep::relabel(live, &labels, &annotations, "is Windlass's"));
    left.chain(unmarked).chain(release(csv)).collect()
}

/// As `--adopt-from` has it, with the namespace.
fn origin(csv: &Value) -> String {
    let text = |path| object::text(csv, path).unwrap_or_default();
    format!("olm/{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

/// Marks what belongs to `csv`, so that it is known when OLM's own marks are gone, and takes those away that OLM's finalizer goes
/// by. What calls webhooks trusts Windlass's certificates as soon as they are served.
fn mark(csv: &Value, live: &Value) -> Option<AdoptionStep> {
    let is_cleaned = CLUSTER_SCOPED
        .iter()
        .any(|(_, kind)| object::text(live, "/kind") == Some(kind));
    let labels = match is_cleaned {
        true => step::without(&OWNER_LABELS),
        false => json!({}),
    };
    let mut annotations = json!({ADOPTED_FROM: origin(csv)});
    if let Some(called) = csv_objects::called(live) {
        annotations[names::INJECT_CA_FROM] = called.into();
    }
    AdoptionStep::relabel(live, &labels, &annotations, "is not OLM's to delete")
}

/// As long as this is there, OLM does not see that the ClusterServiceVersion is gone.
fn hold(csv: &Value) -> Option<AdoptionStep> {
    let finalizers = object::finalizers(csv);
    if finalizers.contains(&ADOPTION_FINALIZER) {
        return None;
    }
    let held: Vec<_> = finalizers.iter().copied().chain([ADOPTION_FINALIZER]).collect();
    Some(AdoptionStep {
        write: finalizers_patch(csv, &held)?,
        undo: None,
        reason: "stays until all that was its is Windlass's",
    })
}

fn delete(csv: &Value) -> Option<AdoptionStep> {
    Some(AdoptionStep {
        write: AdoptionWrite::Delete {
            object: ObjectKey::from_object(csv)?,
            uid: object::text(csv, "/metadata/uid")?.to_owned(),
            orphan: true,
        },
        undo: None,
        reason: "OLM does nothing more for it, and what it owns stays",
    })
}

/// What is next for one that is being deleted.
fn deleted(csv: &Value, objects: &[Value]) -> OlmState {
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
            reason: "OLM resets no conversion when it is gone",
        }]);
    }
    // What it still writes for it, it has begun before it saw the deletion.
    for (finalizer, whom) in [(OLM_FINALIZER, "olm-operator"), (ORPHAN, "the garbage collector")] {
        if object::finalizers(csv).contains(&finalizer) {
            return OlmState::Waiting(format!(
                "waiting for {whom} to see that the {} is deleted; it has to run for that",
                ObjectKey::from_object(csv)
                    .map(|key| key.to_string())
                    .unwrap_or_default()
            ));
        }
    }
    let handed_over: Vec<_> = objects.iter().filter_map(|live| hand_over(csv, live)).collect();
    match handed_over.is_empty() {
        true => OlmState::Released,
        false => OlmState::Due(handed_over),
    }
}

/// Lets Windlass write the Secret that the pods mount.
fn hand_over(csv: &Value, live: &Value) -> Option<AdoptionStep> {
    let is_marked = object::annotation(live, ADOPTED_FROM) == Some(&origin(csv));
    let service = csv_objects::serving_secret_of(live).filter(|_| is_marked)?;
    let labels = json!({names::SERVING_CERTIFICATE: service});
    AdoptionStep::relabel(live, &labels, &json!({}), "may be issued again by Windlass")
}

/// Lets the ClusterServiceVersion go.
fn release(csv: &Value) -> Option<AdoptionStep> {
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
        reason: "nothing is its any more",
    })
}

fn finalizers_patch(csv: &Value, finalizers: &[&str]) -> Option<AdoptionWrite> {
    let version = ("/metadata/resourceVersion", &csv["metadata"]["resourceVersion"]);
    Some(AdoptionWrite::Patch {
        object: ObjectKey::from_object(csv)?,
        patch: patch::guarded(&[version], "/metadata/finalizers", &json!(finalizers)),
    })
}
