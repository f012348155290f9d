//! Applies objects for BundleDeployments.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tracing::info;
use windlass_crd::claims::{self, Adoption, foreign};
use windlass_object::{
    ObjectKey, names, object,
    patch::{self, guarded, release},
};

use super::difference::{body_hash, covers};
use crate::{
    index::Index,
    kind::Kind,
    requests::{Cluster, RequestError},
    slim::is_slimmed,
};

/// Applies objects for their owners.
pub struct Applier {
    pub(super) cluster: Cluster,
    index: Arc<Index>,
    memory: Mutex<HashMap<ObjectKey, Memory>>,
}

/// For whom an object is applied.
#[derive(Clone, Debug)]
pub struct Applicant {
    /// The name of the BundleDeployment; its objects carry it as a label.
    pub bundle_deployment: String,
    /// Objects that Windlass did not create and that may be taken over.
    pub adopt: Vec<Adoption>,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was there already.
    Unchanged,
    /// It was written.
    Written,
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
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// What is known of an object beyond what the index holds.
#[derive(Debug, Default)]
struct Memory {
    /// The body that `made` and `verified` are about.
    hash: String,
    /// What the API server made of the body, where it says some of it in other words (defaults, quantities).
    made: Option<Value>,
    /// The object and its generation that were last seen to hold the whole body; for kinds whose index entry is
    /// not the whole object.
    verified: Option<(String, i64)>,
}

// === impl Applicant ===

impl Applicant {
    /// The name of the BundleDeployment that an object belongs to.
    pub fn of(object: &Value) -> Option<&str> {
        object::label(object, names::BUNDLE_DEPLOYMENT)
    }

    /// Whether `live` may be written: it is ours, was left behind by a BundleDeployment that is gone, or may be taken
    /// over.
    pub fn may_write(&self, live: &Value) -> bool {
        match claims::Owner::of(live) {
            claims::Owner::BundleDeployment(owner) => owner == self.bundle_deployment,
            claims::Owner::Released => true,
            claims::Owner::Other(_) => self.adopt.iter().any(|adoption| adoption.names(live)),
        }
    }
}

// === impl Applier ===

impl Applier {
    /// Applies through `cluster`, and reads what the watches have seen from `index`.
    pub fn new(cluster: Cluster, index: Arc<Index>) -> Self {
        Self {
            cluster,
            index,
            memory: Mutex::default(),
        }
    }

    /// Sees to it that `desired` is there.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; nothing has been written then.
    pub async fn ensure(&self, desired: &Value, owner: &Applicant) -> Result<Outcome, ApplyError> {
        let key = ObjectKey::of(desired).ok_or(RequestError::Nameless)?;
        let body = body_of(desired, owner);
        let Some(live) = self.live(&key, &body).await? else {
            // Without force: what appeared in between and owns a field is foreign.
            let made = self.cluster.apply(&body, names::INSTALL, false).await?;
            self.remember(&key, &body, &made);
            info!(object = %key, "Created");
            return Ok(Outcome::Written);
        };
        let live = self.take_over(&key, live, owner).await?;
        if self.holds(&key, &body, &live) {
            return Ok(Outcome::Unchanged);
        }
        self.write(&key, &body).await
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
        owner: &Applicant,
    ) -> Result<Outcome, ApplyError> {
        let key = ObjectKey::of(body).ok_or(RequestError::Nameless)?;
        let body = body_of(body, owner);
        let mut outcome = Outcome::Unchanged;
        let mut live = match self.live(&key, &body).await? {
            Some(live) => live,
            None => {
                outcome = Outcome::Written;
                info!(object = %key, "Created and armed");
                let mut armed = body_of(armed, owner);
                armed["metadata"]["annotations"][names::APPLIED_HASH] = body_hash(&body).into();
                Arc::new(self.cluster.create(&armed, names::INSTALL).await?)
            }
        };
        live = self.take_over(&key, live, owner).await?;
        if !patch::applied_by(&live, names::INSTALL) || !self.holds(&key, &body, &live) {
            self.swing_webhooks(armed, owner).await?;
            self.write(&key, &body).await?;
            outcome = Outcome::Written;
            live = self.reread(&key).await?;
        }
        self.release(&key, &live, names::INSTALL).await?;
        Ok(outcome)
    }

    /// Takes `manager`'s entry of plain updates out of the object's managed fields, where there is one. Only metadata
    /// changes: the CRD's storage is not rebuilt (kubernetes#128102 is why the entry must go).
    ///
    /// # Errors
    ///
    /// A [`RequestError`]; [`RequestError::is_invalid`] when the entries moved at the same time.
    pub async fn release(&self, key: &ObjectKey, live: &Value, manager: &str) -> Result<(), RequestError> {
        if let Some(patch) = release(live, manager) {
            self.cluster.patch(key, &patch, manager).await?;
        }
        Ok(())
    }

    /// Asks the API server whether it would take `desired`, without writing anything.
    ///
    /// # Errors
    ///
    /// Why it would not, or could not be asked.
    pub async fn try_out(&self, desired: &Value, owner: &Applicant) -> Result<Value, RequestError> {
        self.cluster
            .apply_dry_run(&body_of(desired, owner), names::INSTALL)
            .await
    }

    /// Whether `live` holds everything that `desired` says.
    pub fn is_applied(&self, desired: &Value, live: &Value, owner: &Applicant) -> bool {
        let body = body_of(desired, owner);
        ObjectKey::of(&body).is_some_and(|key| self.holds(&key, &body, live))
    }

    /// Whether `desired` was the last that was applied to `live`; others may have changed it since.
    pub fn was_applied(&self, desired: &Value, live: &Value, owner: &Applicant) -> bool {
        let hash = body_hash(&body_of(desired, owner));
        object::annotation(live, names::APPLIED_HASH) == Some(&hash)
    }

    /// Forgets what is remembered of objects that are gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.memory.lock().remove(key);
    }

    /// The object as it is: from the index where a watch sees it whole, else from the API server. For kinds that the
    /// index does not hold whole, the index will do as long as nothing has changed since the object was last verified.
    async fn live(&self, key: &ObjectKey, body: &Value) -> Result<Option<Arc<Value>>, RequestError> {
        if let Some(seen) = self.index.find(key)
            && (!is_slimmed(&Kind::of(key)) || self.is_verified(key, body, &seen))
        {
            return Ok(Some(seen));
        }
        Ok(self.cluster.read(key).await?.map(Arc::new))
    }

    async fn reread(&self, key: &ObjectKey) -> Result<Arc<Value>, ApplyError> {
        match self.cluster.read(key).await? {
            Some(object) => Ok(Arc::new(object)),
            None => Err(ApplyError::Terminating { object: key.clone() }),
        }
    }

    /// Sees to it that `live` may be written. The garbage collector would take what is adopted with its former owner:
    /// the references to that go first.
    async fn take_over(
        &self,
        key: &ObjectKey,
        live: Arc<Value>,
        owner: &Applicant,
    ) -> Result<Arc<Value>, ApplyError> {
        if !owner.may_write(&live) {
            return Err(ApplyError::Foreign {
                object: key.clone(),
                owner: claims::Owner::of(&live),
            });
        }
        if object::is_terminating(&live) {
            return Err(ApplyError::Terminating { object: key.clone() });
        }
        let references = live.pointer("/metadata/ownerReferences");
        let Some(references) = references.filter(|_| Applicant::of(&live).is_none()) else {
            return Ok(live);
        };
        let guards = [
            ("/metadata/uid", &live["metadata"]["uid"]),
            ("/metadata/ownerReferences", references),
        ];
        let patch = guarded(&guards, "/metadata/ownerReferences", &json!([]));
        let freed = self.cluster.patch(key, &patch, names::INSTALL).await?;
        info!(object = %key, "Taken over");
        Ok(Arc::new(freed))
    }

    async fn write(&self, key: &ObjectKey, body: &Value) -> Result<Outcome, ApplyError> {
        // With force: the object is ours, and whoever changed a field of ours is undone.
        let made = self.cluster.apply(body, names::INSTALL, true).await?;
        self.remember(key, body, &made);
        info!(object = %key, "Applied");
        Ok(Outcome::Written)
    }

    /// Whether `live` holds everything that `body` says.
    fn holds(&self, key: &ObjectKey, body: &Value, live: &Value) -> bool {
        let hash = body_hash(body);
        if object::annotation(live, names::APPLIED_HASH) != Some(&hash) {
            return false;
        }
        if self.is_verified(key, body, live) {
            return true;
        }
        let mut memory = self.memory.lock();
        let remembered = memory.entry(key.clone()).or_default();
        if remembered.hash != hash {
            *remembered = Memory {
                hash,
                ..Memory::default()
            };
        }
        let holds = covers(body, live, remembered.made.as_ref());
        remembered.verified = holds.then(|| version(live)).flatten();
        holds
    }

    fn is_verified(&self, key: &ObjectKey, body: &Value, live: &Value) -> bool {
        let hash = body_hash(body);
        let memory = self.memory.lock();
        memory.get(key).is_some_and(|remembered| {
            remembered.hash == hash
                && object::annotation(live, names::APPLIED_HASH) == Some(&hash)
                && Applicant::of(live) == Applicant::of(body)
                && remembered.verified.is_some()
                && remembered.verified == version(live)
        })
    }

    fn remember(&self, key: &ObjectKey, body: &Value, made: &Value) {
        let plain = covers(body, made, None);
        let memory = Memory {
            hash: body_hash(body),
            made: (!plain).then(|| without_bookkeeping(made)),
            verified: version(made),
        };
        self.memory.lock().insert(key.clone(), memory);
    }
}

/// Uid and generation; of kinds without a generation nothing can be said by it.
fn version(object: &Value) -> Option<(String, i64)> {
    let uid = object::text(object, "/metadata/uid")?.to_owned();
    Some((uid, object.pointer("/metadata/generation")?.as_i64()?))
}

/// What is applied of `desired` for `owner`: with the label of that and the hash of itself, and without what only the API
/// server may say.
pub fn body_of(desired: &Value, owner: &Applicant) -> Value {
    let mut body = desired.clone();
    if let Some(body) = body.as_object_mut() {
        body.remove("status");
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        // What only the API server may say; bundles carry leftovers of it.
        for field in [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "selfLink",
            "uid",
        ] {
            metadata.remove(field);
        }
        for field in ["labels", "annotations"] {
            if !metadata.get(field).is_some_and(Value::is_object) {
                metadata.insert(field.to_owned(), json!({}));
            }
        }
        metadata["labels"][names::BUNDLE_DEPLOYMENT] = owner.bundle_deployment.clone().into();
        let hash = body_hash(&body);
        body["metadata"]["annotations"][names::APPLIED_HASH] = hash.into();
    }
    body
}

fn without_bookkeeping(made: &Value) -> Value {
    let mut made = made.clone();
    if let Some(object) = made.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = made.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Applicant {
        Applicant {
            bundle_deployment: "a".into(),
            adopt: Vec::new(),
        }
    }

    #[test]
    fn only_own_released_or_adoptable_objects_may_be_written() {
        let named = Applicant {
            adopt: vec!["ConfigMap/c".parse().unwrap()],
            ..owner()
        };
        for (metadata, plainly, adopting) in [
            (
                json!({"labels": {"windlass.dev/bundle-deployment": "a"}}),
                true,
                true,
            ),
            (
                json!({"labels": {"windlass.dev/bundle-deployment": "b"}}),
                false,
                false,
            ),
            (json!({}), false, true),
            (
                json!({"annotations": {"windlass.dev/released-by": "b"}}),
                true,
                true,
            ),
            (
                json!({"annotations": {"windlass.dev/released-by": "b", "meta.helm.sh/release-name": "r"}}),
                false,
                true,
            ),
        ] {
            let mut live = json!({"kind": "ConfigMap", "metadata": metadata});
            live["metadata"]["name"] = "c".into();
            assert_eq!(owner().may_write(&live), plainly, "{metadata}");
            assert_eq!(named.may_write(&live), adopting, "{metadata}");
        }
    }

    #[test]
    fn the_hash_is_the_same_for_the_same_body() {
        let desired =
            json!({"kind": "ConfigMap", "metadata": {"name": "c", "creationTimestamp": null}, "status": {}});
        let body = body_of(&desired, &owner());
        assert_eq!(body_of(&body, &owner()), body);
        assert_eq!(body.get("status"), None);
        assert_eq!(
            body["metadata"]["labels"],
            json!({"windlass.dev/bundle-deployment": "a"})
        );
        let hash = body["metadata"]["annotations"][names::APPLIED_HASH]
            .as_str()
            .unwrap();
        assert_eq!(hash, body_hash(&desired_with_label()));
    }

    fn desired_with_label() -> Value {
        json!({
            "kind": "ConfigMap",
            "metadata": {"name": "c", "annotations": {}, "labels": {"windlass.dev/bundle-deployment": "a"}}
        })
    }
}
