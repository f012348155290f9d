//! Applies objects for BundleDeployments.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::Instant;
use tracing::info;
use windlass_crd::claims::{self, LivingDeployments, foreign};
use windlass_object::{
    ObjectKey, names, object,
    patch::{self, guarded, release},
};
use windlass_trust::injection::last_writer;

use super::{
    body::{apply_body, owned},
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
    /// Of each object of which something is kept, what that was when it was looked at last.
    pub(super) retained: Mutex<HashMap<ObjectKey, Arc<RetainedGoal>>>,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was there already.
    Unchanged,
    /// It was written.
    Written,
    /// It is otherwise, since somebody else changes it again and again: it is put back later.
    Contested,
}

/// Why an object was not applied.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// Somebody else's object has the name.
    #[error("{}", foreign(object, owner))]
    Foreign {
        /// The object.
        object: ObjectKey,
        /// Whose it is.
        owner: claims::Owner,
    },
    /// The object is being deleted; another can come only when it is gone.
    #[error("waiting for {object} to be deleted")]
    Terminating {
        /// The object.
        object: ObjectKey,
    },
    /// It cannot be told what must be kept of it.
    #[error("{object}: {by} does not say what to keep: {problem}")]
    Retention {
        /// The object.
        object: ObjectKey,
        /// Who was asked, as [`Retention::answered_by`] says.
        by: String,
        /// Why.
        problem: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// How often an entry of the managed fields is looked for that moves.
const RELEASES: u32 = 5;

// === impl Applier ===

impl Applier {
    /// Applies through `cluster`, and reads what the watches have seen from `index`.
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

    /// The same, which keeps what `retention` says of objects that are there.
    #[must_use]
    pub fn retaining(self, retention: Arc<dyn Retention>) -> Self {
        Self {
            retention: Some(retention),
            ..self
        }
    }

    /// Sees to it that `desired` is there. `replicas` of a Deployment that others scale are left to them, and what a
    /// [`Retention`] says is kept.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; nothing has been written then.
    pub async fn ensure(&self, desired: &Value, owner: &FieldOwner) -> Result<Outcome, ApplyError> {
        if let Some(outcome) = self.ensure_existing(desired, owner).await? {
            return Ok(outcome);
        }
        let key = ObjectKey::from_object(desired).ok_or(RequestError::Nameless)?;
        let body = owned(desired, owner, &Value::Null);
        let create = self.create(&key, &body, owner);
        self.bounded(&key, &body, &Value::Null, owner, create).await
    }

    /// The same, for an object that is there; `None` where it is not, whatever a watch that lags shows.
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
        let body = owned(desired, owner, &Value::Null);
        let Some(live) = self.live(&key, &body, by.is_some()).await? else {
            return Ok(None);
        };
        let live = self.take_over(&key, live, owner).await?;
        let goal = self.goal(&key, desired, owner, &live, by.as_deref()).await?;
        if self.is_reached(&key, &goal, &live) {
            self.repairs.settled(&key);
            return Ok(Some(Outcome::Unchanged));
        }
        let write = async {
            match goal.retained {
                Some(_) => self.write_retained(&key, desired, owner, by.as_deref()).await,
                None => self.write(&key, &goal.body, &live, owner).await,
            }
        };
        self.bounded(&key, &goal.body, &live, owner, write)
            .await
            .map(Some)
    }

    /// Sees to it that an object which sends API traffic to a webhook is there: `armed` is all of it, with its CA
    /// bundle; `body` is the part that installs own, without CA bundle and conversion.
    ///
    /// It is created by one request that holds everything, so that it never calls a webhook without trust in it. Then
    /// the body is claimed by server-side apply, and the entry of the creation is taken out of the managed fields: a
    /// later apply could not remove a field that the creation still owned. One that is there and asks for another trust bundle is
    /// pointed to its new webhooks with that, by one write, too.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; what is done is done, and the next call goes on from there.
    pub async fn ensure_armed(
        &self,
        armed: &Value,
        body: &Value,
        owner: &FieldOwner,
    ) -> Result<Outcome, ApplyError> {
        let key = ObjectKey::from_object(body).ok_or(RequestError::Nameless)?;
        let body = owned(body, owner, &Value::Null);
        self.retained.lock().remove(&key);
        let outcome = match self.live(&key, &body, false).await? {
            Some(live) => {
                let live = self.take_over(&key, live, owner).await?;
                let write = self.write(&key, &body, &live, owner);
                if !patch::written_by(&live, names::INSTALL) {
                    // Taken over from somebody else: it calls others, whom alone it trusts.
                    self.switch_caller(armed, owner).await?;
                    write.await?
                } else if !patch::applied_by(&live, names::INSTALL) {
                    write.await?
                } else if self.holds(&key, &body, &live) {
                    self.repairs.settled(&key);
                    self.release(&key, &live, names::INSTALL).await?;
                    return Ok(Outcome::Unchanged);
                } else {
                    self.switch_caller(armed, owner).await?;
                    self.bounded(&key, &body, &live, owner, write).await?
                }
            }
            None => {
                let create = self.create_armed(&key, armed, &body, owner);
                self.bounded(&key, &body, &Value::Null, owner, create).await?
            }
        };
        if outcome == Outcome::Written {
            let live = self.reread(&key).await?;
            self.release(&key, &live, names::INSTALL).await?;
        }
        Ok(outcome)
    }

    /// Takes `manager`'s entry of plain updates out of the object's managed fields, where there is one. Only metadata
    /// changes: the CRD's storage is not rebuilt (kubernetes#128102 is why the entry must go).
    ///
    /// # Errors
    ///
    /// A [`RequestError`]; [`RequestError::is_invalid`] when the entries move again and again.
    pub async fn release(&self, key: &ObjectKey, live: &Value, manager: &str) -> Result<(), RequestError> {
        let mut moved = None;
        for last in (0..RELEASES).rev() {
            let Some(patch) = release(moved.as_ref().unwrap_or(live), manager) else {
                break;
            };
            match self.cluster.patch(key, &patch, manager).await {
                Err(error) if error.is_invalid() && last > 0 => {}
                released => return released.map(drop),
            }
            // Others have written, as kube-aggregator writes the status of an APIService as soon as that is there.
            moved = self.cluster.read(key).await?;
            if moved.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Asks the API server whether it would take `desired`, with what must be kept, without writing anything.
    ///
    /// # Errors
    ///
    /// Why it would not, or could not be asked.
    pub async fn dry_run(&self, desired: &Value, owner: &FieldOwner) -> Result<Value, ApplyError> {
        let body = self.dry_run_body(desired, owner).await?;
        let key = ObjectKey::from_object(&body).ok_or(RequestError::Nameless)?;
        Ok(self
            .writing(&key, owner)
            .apply_dry_run(&body, names::INSTALL)
            .await?)
    }

    /// Whether `live` holds everything that `desired` says. Of what is kept that is known which was kept when it was applied or
    /// found unchanged last.
    pub fn is_applied(&self, desired: &Value, live: &Value, owner: &FieldOwner) -> bool {
        let Some(key) = ObjectKey::from_object(desired) else {
            return false;
        };
        match self.retained_last(&key, desired, owner) {
            Some(goal) => self.holds_retained(&key, &goal, live),
            None => self.holds(&key, &owned(desired, owner, live), live),
        }
    }

    /// Whether `desired` was the last that was applied to `live`; others may have changed it since.
    pub fn was_applied(&self, desired: &Value, live: &Value, owner: &FieldOwner) -> bool {
        let Some(hash) = object::annotation(live, names::APPLIED_HASH) else {
            return false;
        };
        let is_of = |body: &Value| hash == body_hash(body);
        let is_asked = self.answered_by(desired).is_some();
        is_of(&owned(desired, owner, live)) || is_asked && is_of(&apply_body(desired, owner))
    }

    /// Forgets what is remembered of objects that are gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.forget_memory(key);
        self.repairs.forget(key);
    }

    pub(super) fn forget_memory(&self, key: &ObjectKey) {
        self.memory.lock().remove(key);
        self.retained.lock().remove(key);
    }

    /// The objects of a BundleDeployment that others change again and again: of each, how long until it is put back
    /// again, and whether its repairs have doubled since this was asked.
    pub fn contested(&self, bundle_deployment: &str) -> Vec<RepairContest> {
        self.repairs.contested(bundle_deployment, Instant::now())
    }

    /// The object as it is: from the index where a watch sees it whole, else from the API server. For kinds that the
    /// index does not hold whole, the index will do as long as nothing has changed since the object was last verified, unless
    /// somebody is asked about all of it.
    async fn live(
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

    /// Writes an object of its owner, by nobody's rights but those of whom it is applied as. Reading is Windlass' own: it watches
    /// these kinds anyway, and shows nobody what is in them.
    pub(super) fn writing(&self, key: &ObjectKey, owner: &FieldOwner) -> Cluster {
        self.cluster.impersonating(owner.writes_as(&Kind::from_key(key)))
    }

    /// Creates an object as [`Cluster::create_by_apply`] does.
    async fn create(&self, key: &ObjectKey, body: &Value, owner: &FieldOwner) -> Result<Outcome, ApplyError> {
        match self
            .writing(key, owner)
            .create_by_apply(body, names::INSTALL)
            .await
        {
            Err(error) if error.is_conflict() => Err(self.appeared(key, owner, error).await),
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
        let mut armed = owned(armed, owner, &Value::Null);
        armed["metadata"]["annotations"][names::APPLIED_HASH] = body_hash(body).into();
        match self.writing(key, owner).create(&armed, names::INSTALL).await {
            Err(error) if error.is_conflict() => return Err(self.appeared(key, owner, error).await),
            created => {
                info!(object = %key, "Created and armed");
                self.write(key, body, &created?, owner).await
            }
        }
    }

    /// What to say of an object that could not be written as it was seen: whose it is, if it is another's by now.
    pub(super) async fn appeared(
        &self,
        key: &ObjectKey,
        owner: &FieldOwner,
        conflict: RequestError,
    ) -> ApplyError {
        let living = self.living(owner);
        match self.cluster.read(key).await {
            Ok(Some(live)) if !owner.may_write(&live, &living) => ApplyError::Foreign {
                object: key.clone(),
                owner: claims::Owner::from_object(&live, &living),
            },
            // Ours: the next try sees it as it is.
            _ => conflict.into(),
        }
    }

    /// Which BundleDeployments own objects: those that are there, with this one, which a watch may not show yet.
    fn living(&self, owner: &FieldOwner) -> LivingDeployments {
        let own = (owner.bundle_deployment.clone(), owner.uid.clone());
        let text = |object: &Value, pointer| Some(object::text(object, pointer)?.to_owned());
        let seen = self.index.objects(&kinds::BUNDLE_DEPLOYMENT);
        let seen = seen
            .iter()
            .filter_map(|seen| Some((text(seen, "/metadata/name")?, text(seen, "/metadata/uid")?)));
        seen.chain([own]).collect()
    }

    /// Writes an object that does not hold `body`, now or later: what was applied before as it is to be is put back,
    /// and that less and less often.
    async fn bounded(
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
            Outcome::Written => self.repairs.repaired(key, Instant::now()),
            // A watch had shown it late.
            _ => self.repairs.settled(key),
        }
        Ok(outcome)
    }

    /// Sees to it that `live` may be written. The garbage collector would take what is adopted with its former owner:
    /// the references to that go first.
    pub(super) async fn take_over(
        &self,
        key: &ObjectKey,
        live: Arc<Value>,
        owner: &FieldOwner,
    ) -> Result<Arc<Value>, ApplyError> {
        let living = self.living(owner);
        let belongs_to = claims::Owner::from_object(&live, &living);
        if !owner.may_write(&live, &living) {
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
        let freed = self
            .writing(key, owner)
            .patch(key, &patch, names::INSTALL)
            .await?;
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
        // With force: the object is ours, and whoever changed a field of ours is undone. If it still is the one that was
        // seen: the API server lets no uid change (422), and creates none with a uid (409).
        let mut changed = body.clone();
        if let Some(uid) = object::text(live, "/metadata/uid") {
            changed["metadata"]["uid"] = uid.into();
        }
        match self
            .writing(key, owner)
            .apply(&changed, names::INSTALL, true)
            .await
        {
            Err(error) if error.is_conflict() || error.is_invalid() => {
                Err(self.appeared(key, owner, error).await)
            }
            made => {
                self.remember(key, body, &made?);
                info!(object = %key, "Applied");
                Ok(Outcome::Written)
            }
        }
    }
}
