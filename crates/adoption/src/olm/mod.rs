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
//! | 2 | its objects are marked | continues |
//! | 3 | the ClusterServiceVersion gets a finalizer of Windlass | continues |
//! | 4 | its cluster-scoped objects lose the labels of their owner | at most creates other webhook configurations |
//! | 5 | it is deleted, and its objects are orphaned | does nothing: it has a deletionTimestamp |
//! | 6 | its webhook definitions are removed | does nothing |
//! | 7 | the Secrets with its certificates are labelled as Windlass's | does nothing |
//! | 8 | the bundle is installed, and adopts the objects of the same names | does nothing |
//! | 9 | objects of OLM that the bundle lacks are deleted, also those that OLM created after step 4 | does nothing |
//! | 10 | the finalizer is removed, and the ClusterServiceVersion is gone | finds no webhook definition whose conversion to reset |
//!
//! Until step 5 everything can be undone. After it the operator runs as before, without OLM. Step 6 waits for
//! step 5, since OLM would otherwise remove the certificates from the pods.
//!
//! No write between steps 4 and 5 depends on the state of the ClusterServiceVersion, which OLM changes after
//! step 4. Otherwise OLM could create webhook configurations without end.

mod csv_objects;
mod observation;
mod operator;
mod refusal;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use windlass_object::{ObjectKey, names, object, patch};

use crate::{
    ADOPTED_FROM, ADOPTION_FINALIZER, AdoptionRecord, AdoptionSource, AdoptionStep, AdoptionWrite,
    RecordedObject, RecordedRole, step,
};

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
    /// No write is due, but another component has to act: what to wait for.
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
    if let [OlmRefusal::NotInstalled { phase, .. }] = &refusals[..]
        && observation
            .objects
            .iter()
            .any(|live| is_marked(live, &origin(csv)))
    {
        // OLM creates webhook configurations again that lost its labels in an interrupted run.
        return Ok(OlmState::Waiting(format!(
            "OLM to install the operator again; the phase of the ClusterServiceVersion is {phase}"
        )));
    }
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
        return Ok(OlmState::Waiting("the Subscription to be deleted".to_owned()));
    }
    let marks = observation.csv_objects().filter_map(|live| mark(csv, live));
    let steps: Vec<_> = marks.chain(add_finalizer(csv)).collect();
    if !steps.is_empty() {
        return Ok(OlmState::Due(steps));
    }
    let unlabelled = observation.csv_objects().filter_map(remove_owner_labels);
    Ok(OlmState::Due(unlabelled.chain(delete_csv(csv)).collect()))
}

/// Returns the objects that OLM created after the adoption was recorded; the bundle does not have them.
///
/// OLM creates webhook configurations again, under other names, when it finds none with its labels.
pub fn unrecorded_objects(record: &AdoptionRecord, objects: &[Value]) -> Vec<RecordedObject> {
    let origin = record.source.to_string();
    let is_recorded = |live: &Value| {
        let uid = object::text(live, "/metadata/uid");
        record.objects.iter().any(|recorded| recorded.uid() == uid)
    };
    let is_of_bundle = |live: &Value| {
        object::label(live, names::BUNDLE_DEPLOYMENT).is_some()
            || object::label(live, names::SERVING_CERTIFICATE).is_some()
            || csv_objects::is_crd(live)
    };
    objects
        .iter()
        .filter(|live| is_marked(live, &origin) && !is_recorded(live) && !is_of_bundle(live))
        .map(|live| RecordedObject::new(RecordedRole::LeftOver, live))
        .collect()
}

/// Returns the steps after all objects that the bundle lacks are deleted. `csv` is `None` if it does not
/// exist.
pub fn final_steps(source: &AdoptionSource, csv: Option<&Value>, objects: &[Value]) -> Vec<AdoptionStep> {
    let origin = source.to_string();
    let labels = step::removals(&[&OWNER_LABELS[..], &["olm.managed"]].concat());
    let annotations = step::removals(&[ADOPTED_FROM]);
    objects
        .iter()
        .filter(|live| is_marked(live, &origin))
        .filter_map(|live| AdoptionStep::relabel(live, &labels, &annotations, "is Windlass's"))
        .chain(csv.and_then(remove_finalizer))
        .collect()
}

fn is_marked(live: &Value, origin: &str) -> bool {
    object::annotation(live, ADOPTED_FROM) == Some(origin)
}

/// Returns the owner in the syntax of `--adopt-from`, with the namespace.
fn origin(csv: &Value) -> String {
    let text = |path| object::text(csv, path).unwrap_or_default();
    format!("olm/{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

/// Marks an object of `csv`, so that it can be found without OLM's labels. Callers of webhooks get Windlass's
/// CA as soon as its certificates are served.
fn mark(csv: &Value, live: &Value) -> Option<AdoptionStep> {
    let mut annotations = json!({ADOPTED_FROM: origin(csv)});
    if let Some(called) = csv_objects::only_called_service(live) {
        annotations[names::INJECT_CA_FROM] = called.into();
    }
    AdoptionStep::relabel(live, &json!({}), &annotations, "records its owner")
}

/// Removes the labels that OLM's finalizer deletes a cluster-scoped object by.
fn remove_owner_labels(live: &Value) -> Option<AdoptionStep> {
    let mut cleaned = CLUSTER_SCOPED.iter();
    cleaned.find(|(_, kind)| object::text(live, "/kind") == Some(kind))?;
    let labels = step::removals(&OWNER_LABELS);
    AdoptionStep::relabel(live, &labels, &json!({}), "prevents its deletion by OLM")
}

/// Adds the finalizer that keeps OLM from handling the deletion of the ClusterServiceVersion.
fn add_finalizer(csv: &Value) -> Option<AdoptionStep> {
    let finalizers = object::finalizers(csv);
    if finalizers.contains(&ADOPTION_FINALIZER) {
        return None;
    }
    let held: Vec<_> = finalizers.iter().copied().chain([ADOPTION_FINALIZER]).collect();
    let undo = AdoptionWrite::Patch {
        object: ObjectKey::from_object(csv)?,
        patch: patch::guarded(
            &[
                ("/metadata/uid", &csv["metadata"]["uid"]),
                ("/metadata/finalizers", &json!(held)),
            ],
            "/metadata/finalizers",
            &json!(finalizers),
        ),
    };
    Some(AdoptionStep {
        write: finalizers_patch(csv, &held)?,
        undo: Some(undo),
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
                "{whom} to process the deletion of {}: check that it is running",
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
    let service = csv_objects::service_of_secret(live).filter(|_| is_marked(live, &origin(csv)))?;
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
