//! Applies objects for BundleDeployments.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::Instant;
use tracing::info;
use windlass_crd::claims::{self, ExistingDeployments, foreign_object_message};
use windlass_object::{
    ObjectKey, names, object,
    patch::{self, guarded, release},
};
use windlass_trust::injection::last_writer;

use super::{
    body::{apply_body, owned_body},
    difference::body_hash,
    field_owner::FieldOwner,
    memory::Memory,
    repairs::{Interference, RepairContest, Repairs},
    retention::{RetainedGoal, Retention},
};
use crate::{
    index::Index,
    kind::{Kind, kinds},
    requests::{Cluster, RequestError},
    trim::is_whole,
};

/// Applies objects for their owners.
pub struct Applier {
    pub(super) cluster: Cluster,
    index: Arc<Index>,
    pub(super) memory: Mutex<HashMap<ObjectKey, Memory>>,
    repairs: Repairs,
    pub(super) retention: Option<Arc<dyn Retention>>,
    /// The last computed goal of each object with retained values.
    pub(super) retained: Mutex<HashMap<ObjectKey, Arc<RetainedGoal>>>,
}

/// The outcome of applying an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The object was up to date.
    Unchanged,
    /// The object was written.
    Written,
    /// Another client keeps changing the object: its repair is postponed.
    Contested,
}

/// Why an object was not applied.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ApplyError {
    /// The object belongs to another owner.
    #[error("{}", foreign_object_message(object, owner))]
    Foreign { object: ObjectKey, owner: claims::Owner },
    /// The object is being deleted; it can be created again after that.
    #[error("waiting for {object} to be deleted")]
    Terminating { object: ObjectKey },
    /// The values to retain are unknown.
    #[error("{object}: {by} failed to retain values: {problem}")]
    Retention {
        object: ObjectKey,
        /// The retention's source, from [`Retention::answered_by`].
        by: String,
        problem: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// How often to look up a moving entry of the managed fields.
const RELEASES: u32 = 5;

impl Applier {
    /// Creates an applier that writes through `cluster` and reads watched objects from `index`.
    pub fn new(cluster: Cluster, index: Arc<Index>) -> Self {
        Self {
            cluster,
            index,
            memory: Mutex::default(),
            repairs: Repairs::default(),
            retention: None,
            retained: Mutex::default(),
        }
    }

    /// Sets the `retention` for values of existing objects.
    #[must_use]
    pub fn retaining(self, retention: Arc<dyn Retention>) -> Self {
        Self {
            retention: Some(retention),
            ..self
        }
    }

    /// Applies `desired` unless the object is up to date. `replicas` of a Deployment that others scale and
    /// values that a [`Retention`] names are kept.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; nothing has been written then.
    pub async fn ensure(&self, desired: &Value, owner: &FieldOwner) -> Result<Outcome, ApplyError> {
        if let Some(outcome) = self.ensure_existing(desired, owner).await? {
            return Ok(outcome);
        }
        let key = ObjectKey::from_object(desired).ok_or(RequestError::Nameless)?;
        let body = owned_body(desired, owner, &Value::Null);
        let create = self.create(&key, &body, owner);
        self.write_with_backoff(&key, &body, &Value::Null, owner, create)
            .await
    }

    /// Applies `desired` as [`Applier::ensure`] does if the object exists; `None` if it does not, even if a
    /// lagging watch still shows it.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; nothing has been written then.
    pub async fn ensure_existing(
        &self,
        desired: &Value,
        owner: &FieldOwner,
    ) -> Result<Option<Outcome>, ApplyError> {
        let key = ObjectKey::from_object(desired).ok_or(RequestError::Nameless)?;
        let by = self.answered_by(desired);
        let body = owned_body(desired, owner, &Value::Null);
        let Some(live) = self.live_object(&key, &body, by.is_some()).await? else {
            return Ok(None);
        };
        let live = self.take_over(&key, live, owner).await?;
        let goal = self.goal(&key, desired, owner, &live, by.as_deref()).await?;
        if self.is_reached(&key, &goal, &live) {
            self.repairs.record_settled(&key);
            return Ok(Some(Outcome::Unchanged));
        }
        let write = async {
            match goal.retained {
                Some(_) => self.write_retained(&key, desired, owner, by.as_deref()).await,
                None => self.write(&key, &goal.body, &live, owner).await,
            }
        };
        self.write_with_backoff(&key, &goal.body, &live, owner, write)
            .await
            .map(Some)
    }

    /// Applies an object that sends API traffic to a webhook: `armed` is the complete object, with its CA
    /// bundle; `body` is the part that installs own, without CA bundle and conversion.
    ///
    /// A single request creates the complete object, so that it never calls a webhook without a CA bundle.
    /// Then the body is claimed by server-side apply, and the entry of the creation is removed from the
    /// managed fields: a later apply could not remove a field that the creation still owned. An existing
    /// object that requests another trust bundle is switched to its new webhooks and that bundle by a single
    /// write, too.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; completed steps are kept, and the next call continues from there.
    pub async fn ensure_armed(
        &self,
        armed: &Value,
        body: &Value,
        owner: &FieldOwner,
    ) -> Result<Outcome, ApplyError> {
        let key = ObjectKey::from_object(body).ok_or(RequestError::Nameless)?;
        let body = owned_body(body, owner, &Value::Null);
        self.retained.lock().remove(&key);
        let outcome = match self.live_object(&key, &body, false).await? {
            Some(live) => {
                let live = self.take_over(&key, live, owner).await?;
                let write = self.write(&key, &body, &live, owner);
                if !patch::is_written_by(&live, names::INSTALL) {
                    // Taken over from another owner: its CA bundle fits the webhooks that it calls now.
                    self.switch_caller(armed, owner).await?;
                    write.await?
                } else if !patch::applied_by(&live, names::INSTALL) {
                    write.await?
                } else if self.holds(&key, &body, &live) {
                    self.repairs.record_settled(&key);
                    let is_left = self.release(&key, &live, names::INSTALL).await?;
                    return Ok(if is_left {
                        Outcome::Written
                    } else {
                        Outcome::Unchanged
                    });
                } else {
                    self.switch_caller(armed, owner).await?;
                    self.write_with_backoff(&key, &body, &live, owner, write).await?
                }
            }
            None => {
                let create = self.create_armed(&key, armed, &body, owner);
                self.write_with_backoff(&key, &body, &Value::Null, owner, create)
                    .await?
            }
        };
        if outcome == Outcome::Written {
            let live = self.reread(&key).await?;
            self.release(&key, &live, names::INSTALL).await?;
        }
        Ok(outcome)
    }

    /// Removes `manager`'s entry of plain updates from the object's managed fields, and reports whether there
    /// was one. Only metadata changes, so the API server does not rebuild the storage of a CRD (the entry must
    /// be removed because of kubernetes#128102).
    ///
    /// # Errors
    ///
    /// A [`RequestError`]; [`RequestError::is_invalid`] if the entries keep moving.
    pub async fn release(&self, key: &ObjectKey, live: &Value, manager: &str) -> Result<bool, RequestError> {
        let mut moved = None;
        for last in (0..RELEASES).rev() {
            let Some(patch) = release(moved.as_ref().unwrap_or(live), manager) else {
                break;
            };
            match self.cluster.patch(key, &patch, manager).await {
                Err(error) if error.is_invalid() && last > 0 => {}
                released => return released.map(|_| true),
            }
            // Another client has written, for example kube-aggregator the status of a new APIService.
            moved = self.cluster.read(key).await?;
            if moved.is_none() {
                break;
            }
        }
        Ok(false)
    }

    /// Validates `desired`, with retained values, by a dry run.
    ///
    /// # Errors
    ///
    /// Why the API server rejects it, or a failed request.
    pub async fn dry_run(&self, desired: &Value, owner: &FieldOwner) -> Result<Value, ApplyError> {
        let body = self.dry_run_body(desired, owner).await?;
        let key = ObjectKey::from_object(&body).ok_or(RequestError::Nameless)?;
        Ok(self
            .writer(&key, owner)
            .apply_dry_run(&body, names::INSTALL)
            .await?)
    }

    /// Reports whether `live` contains everything in `desired`. Retained values are those of the last apply
    /// or the last comparison without a difference.
    pub fn is_applied(&self, desired: &Value, live: &Value, owner: &FieldOwner) -> bool {
        let Some(key) = ObjectKey::from_object(desired) else {
            return false;
        };
        match self.last_retained_goal(&key, desired, owner) {
            Some(goal) => self.holds_retained(&key, &goal, live),
            None => self.holds(&key, &owned_body(desired, owner, live), live),
        }
    }

    /// Reports whether `desired` was the last body applied to `live`; others may have changed it since.
    pub fn was_applied(&self, desired: &Value, live: &Value, owner: &FieldOwner) -> bool {
        let Some(hash) = object::annotation(live, names::APPLIED_HASH) else {
            return false;
        };
        let is_of = |body: &Value| hash == body_hash(body);
        let is_asked = self.answered_by(desired).is_some();
        is_of(&owned_body(desired, owner, live)) || is_asked && is_of(&apply_body(desired, owner))
    }

    /// Forgets a deleted object.
    pub fn forget(&self, key: &ObjectKey) {
        self.forget_memory(key);
        self.repairs.forget(key);
    }

    pub(super) fn forget_memory(&self, key: &ObjectKey) {
        self.memory.lock().remove(key);
        self.retained.lock().remove(key);
    }

    /// Returns the objects of a BundleDeployment that other clients keep changing, with the delay of the next
    /// repair and whether the number of repairs has doubled since the last call.
    pub fn contested(&self, bundle_deployment: &str) -> Vec<RepairContest> {
        self.repairs.contested(bundle_deployment, Instant::now())
    }

    /// Returns the live object: from the index if that holds it completely, otherwise from the API server. An
    /// incomplete index entry is sufficient while the object has not changed since its last verification,
    /// unless a retention needs the whole object.
    async fn live_object(
        &self,
        key: &ObjectKey,
        body: &Value,
        is_asked_about: bool,
    ) -> Result<Option<Arc<Value>>, RequestError> {
        if let Some(seen) = self.index.find(key)
            && (is_whole(&seen, &Kind::from_key(key))
                || !is_asked_about && self.is_verified(key, body, &seen))
        {
            return Ok(Some(seen));
        }
        Ok(self.cluster.read(key).await?.map(Arc::new))
    }

    pub(super) async fn reread(&self, key: &ObjectKey) -> Result<Arc<Value>, ApplyError> {
        match self.cluster.read(key).await? {
            Some(object) => Ok(Arc::new(object)),
            None => Err(ApplyError::Terminating { object: key.clone() }),
        }
    }

    /// Returns a cluster for writes with the permissions of the owner's account only. Reads use Windlass's
    /// own permissions: it watches these kinds anyway, and does not disclose their content.
    pub(super) fn writer(&self, key: &ObjectKey, owner: &FieldOwner) -> Cluster {
        self.cluster
            .impersonating(owner.service_account_for(&Kind::from_key(key)))
    }

    /// Creates an object as [`Cluster::create_by_apply`] does.
    async fn create(&self, key: &ObjectKey, body: &Value, owner: &FieldOwner) -> Result<Outcome, ApplyError> {
        match self
            .writer(key, owner)
            .create_by_apply(body, names::INSTALL)
            .await
        {
            Err(error) if error.is_conflict() => Err(self.conflict_error(key, owner, error).await),
            made => {
                self.remember(key, body, &made?);
                info!(object = %key, "Created");
                Ok(Outcome::Written)
            }
        }
    }

    async fn create_armed(
        &self,
        key: &ObjectKey,
        armed: &Value,
        body: &Value,
        owner: &FieldOwner,
    ) -> Result<Outcome, ApplyError> {
        let mut armed = owned_body(armed, owner, &Value::Null);
        armed["metadata"]["annotations"][names::APPLIED_HASH] = body_hash(body).into();
        match self.writer(key, owner).create(&armed, names::INSTALL).await {
            Err(error) if error.is_conflict() => return Err(self.conflict_error(key, owner, error).await),
            created => {
                info!(object = %key, "Created with CA bundle");
                self.write(key, body, &created?, owner).await
            }
        }
    }

    /// Returns the error for an object that changed before it could be written; [`ApplyError::Foreign`] if it
    /// now has another owner.
    pub(super) async fn conflict_error(
        &self,
        key: &ObjectKey,
        owner: &FieldOwner,
        conflict: RequestError,
    ) -> ApplyError {
        let existing = self.existing_deployments(owner);
        match self.cluster.read(key).await {
            Ok(Some(live)) if !owner.may_write(&live, &existing) => ApplyError::Foreign {
                object: key.clone(),
                owner: claims::Owner::from_object(&live, &existing),
            },
            // The BundleDeployment still owns the object; the next attempt reads its current state.
            _ => conflict.into(),
        }
    }

    /// Returns the existing BundleDeployments, including this one, which a watch may not show yet.
    fn existing_deployments(&self, owner: &FieldOwner) -> ExistingDeployments {
        let own = (owner.bundle_deployment.clone(), owner.uid.clone());
        let text = |object: &Value, pointer| Some(object::text(object, pointer)?.to_owned());
        let seen = self.index.objects(&kinds::BUNDLE_DEPLOYMENT);
        let seen = seen
            .iter()
            .filter_map(|seen| Some((text(seen, "/metadata/name")?, text(seen, "/metadata/uid")?)));
        seen.chain([own]).collect()
    }

    /// Writes an object that differs from `body`, now or later: repairs of an unchanged body are made with
    /// increasing delays.
    async fn write_with_backoff(
        &self,
        key: &ObjectKey,
        body: &Value,
        live: &Value,
        owner: &FieldOwner,
        write: impl Future<Output = Result<Outcome, ApplyError>>,
    ) -> Result<Outcome, ApplyError> {
        let hash = body_hash(body);
        let known = self.memory.lock().get(key).map(|memory| memory.hash.clone());
        let applied = object::annotation(live, names::APPLIED_HASH);
        if ![known.as_deref(), applied].contains(&Some(&hash)) {
            return write.await;
        }
        let owner = &owner.bundle_deployment;
        let change = if live.is_null() {
            Interference::Deletion
        } else {
            Interference::Edit {
                by: last_writer(live),
            }
        };
        if !self.repairs.may_repair(key, owner, change, Instant::now()) {
            return Ok(Outcome::Contested);
        }
        let outcome = write.await?;
        match outcome {
            Outcome::Written => self.repairs.record_repair(key, Instant::now()),
            // The object is up to date; the watch was late.
            _ => self.repairs.record_settled(key),
        }
        Ok(outcome)
    }

    /// Checks that `live` may be written. Removes the owner references of adopted objects: otherwise the
    /// garbage collector would delete them with their former owner.
    pub(super) async fn take_over(
        &self,
        key: &ObjectKey,
        live: Arc<Value>,
        owner: &FieldOwner,
    ) -> Result<Arc<Value>, ApplyError> {
        let existing = self.existing_deployments(owner);
        let belongs_to = claims::Owner::from_object(&live, &existing);
        if !owner.may_write(&live, &existing) {
            return Err(ApplyError::Foreign {
                object: key.clone(),
                owner: belongs_to,
            });
        }
        if object::is_terminating(&live) {
            return Err(ApplyError::Terminating { object: key.clone() });
        }
        let references = live.pointer("/metadata/ownerReferences");
        let is_owned = matches!(belongs_to, claims::Owner::BundleDeployment(_));
        let Some(references) = references.filter(|_| !is_owned) else {
            return Ok(live);
        };
        let guards = [
            ("/metadata/uid", &live["metadata"]["uid"]),
            ("/metadata/ownerReferences", references),
        ];
        let patch = guarded(&guards, "/metadata/ownerReferences", &json!([]));
        let freed = self.writer(key, owner).patch(key, &patch, names::INSTALL).await?;
        info!(object = %key, "Taken over");
        Ok(Arc::new(freed))
    }

    pub(super) async fn write(
        &self,
        key: &ObjectKey,
        body: &Value,
        live: &Value,
        owner: &FieldOwner,
    ) -> Result<Outcome, ApplyError> {
        // Forced, since the BundleDeployment owns the object: changes by other clients to its fields are
        // reverted. The uid guards against another object of the same name: the API server rejects a changed
        // uid (422) and a creation with a uid (409).
        let mut changed = body.clone();
        if let Some(uid) = object::text(live, "/metadata/uid") {
            changed["metadata"]["uid"] = uid.into();
        }
        match self
            .writer(key, owner)
            .apply(&changed, names::INSTALL, true)
            .await
        {
            Err(error) if error.is_conflict() || error.is_invalid() => {
                Err(self.conflict_error(key, owner, error).await)
            }
            made => {
                self.remember(key, body, &made?);
                info!(object = %key, "Applied");
                Ok(Outcome::Written)
            }
        }
    }
}
