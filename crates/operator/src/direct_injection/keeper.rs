//! One source of CA certificates that somebody else writes: what it gives is noted, and targets go on trusting what it gave before
//! until every server behind them is seen under what it gives now.
//!
//! ```text
//! the source gives B -> record {B, before A} -> targets get {A,B} -> every server is seen under B -> record {B} -> targets get {B}
//! ```

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use tracing::info;
use windlass_cluster::{
    RequestError,
    worker::{Action, Queue},
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::{Consent, Reach},
    objects::SourceRecord,
    rotation::Timing,
    trust_bundle::TrustBundle,
};

use super::{
    handover::handed_over, observed_source::ObservedSource, observed_sources::ObservedSources,
    requests::InjectionRequests,
};
use crate::{context::Context, install::traffic::CalledPort, servers::are_trusted};

/// Keeps the records of sources.
pub(super) struct SourceKeeper {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) sources: Arc<ObservedSources>,
    pub(super) requests: Arc<Mutex<InjectionRequests>>,
    /// The targets that are to be looked at.
    pub(super) targets: Arc<Queue<ObjectKey>>,
    /// What targets were told last of each source.
    pub(super) told: Mutex<HashMap<ObjectKey, Told>>,
}

/// What matters to targets of a source.
#[derive(PartialEq, Eq)]
pub(super) struct Told {
    trust: Option<TrustBundle>,
    problem: Option<String>,
    withheld: [bool; Consent::ALL.len()],
}

/// Why a source has to be looked at again.
#[derive(Debug, Error)]
pub(super) enum KeepSourceError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// What is to be noted cannot be written as JSON.
    #[error("cannot encode the record of a source")]
    Encode(#[from] serde_json::Error),
}

/// How often a source is looked at that nothing changes of.
const LOOK: Duration = Duration::from_secs(600);

/// Of the time for which servers have not been seen under what a source gives, how much passes until they are looked at again.
const PATIENCE: i32 = 8;

// === impl SourceKeeper ===

impl SourceKeeper {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, KeepSourceError> {
        if !self.requests.lock().is_asked(&key) {
            return self.forget(&key).await;
        }
        let Some(source) = self.sources.find(&key, &self.context) else {
            return Ok(Action::AwaitChange);
        };
        self.tell(&key, &source);
        let now = self.context.clock.now();
        let handed_over = || handed_over(&key, &self.requests.lock(), &self.context.index);
        let Some(mut record) = source.next_record(handed_over, now) else {
            return Ok(Action::AwaitChange);
        };
        let waits = record.replaced().map(|replaced| now.duration_since(replaced));
        if let Some(waited) = waits
            && waited >= self.timing.overlap
            && source.given.is_ok()
            && self.is_seen_everywhere(&key, &record).await
        {
            record = record.settled();
            info!(source = %key, "Every server is seen under the CA that the source gives now");
        }
        if source.record.as_ref() != Some(&record) {
            self.write(&key, &source, &record).await?;
        }
        let Some(waited) = waits.filter(|_| record.replaced().is_some()) else {
            return Ok(Action::Requeue(LOOK));
        };
        let pause = (waited / PATIENCE).clamp(self.timing.poll, self.timing.longest_sleep);
        Ok(Action::Requeue(pause.unsigned_abs()))
    }

    /// Has the targets of a source looked at, if what matters to them is not as it was.
    fn tell(&self, key: &ObjectKey, source: &ObservedSource) {
        let told = Told {
            trust: source.trust.clone(),
            problem: source.given.as_ref().err().map(ToString::to_string),
            withheld: Consent::ALL.map(|consent| source.is_withheld(consent).is_some()),
        };
        let mut all = self.told.lock();
        if all.get(key) != Some(&told) {
            all.insert(key.clone(), told);
            let requests = self.requests.lock();
            requests
                .targets(key)
                .for_each(|target| self.targets.add(target.clone()));
        }
    }

    /// Writes what is noted of a source. A watch tells when it is there.
    async fn write(
        &self,
        key: &ObjectKey,
        source: &ObservedSource,
        record: &SourceRecord,
    ) -> Result<(), KeepSourceError> {
        let cluster = &self.context.cluster;
        let secret = SourceRecord::key(&self.context.namespace, key);
        // A watch may be late, and does not show one without its label: what was noted since counts, too.
        let live = cluster.read(&secret).await?;
        let noted = live.as_ref().and_then(SourceRecord::read);
        let noted = noted.filter(|(of, noted)| of == key && source.record.as_ref() != Some(noted));
        let later = noted.map(|(_, noted)| noted.after(record.given(), self.context.clock.now()));
        let version = live
            .as_ref()
            .and_then(|live| object::text(live, "/metadata/resourceVersion"));
        let body = later.as_ref().unwrap_or(record).write(&secret, key, version)?;
        match version {
            Some(_) => cluster.replace(&body, names::CERTIFICATES).await?,
            None => cluster.create(&body, names::CERTIFICATES).await?,
        };
        info!(source = %key, "Noted what the source gives");
        Ok(())
    }

    /// Whether every server that targets of a source call is seen under what that gives now. A server that cannot be looked at
    /// may present anything.
    async fn is_seen_everywhere(&self, key: &ObjectKey, record: &SourceRecord) -> bool {
        let index = &self.context.index;
        let targets: Vec<_> = self.requests.lock().targets(key).cloned().collect();
        let mut called = BTreeSet::new();
        let places = Reach::everything().within(index.target_kinds());
        for target in targets.iter().filter_map(|target| index.find(target)) {
            match called_by(&target, &places) {
                Some(ports) => called.extend(ports),
                None => return false,
            }
        }
        are_trusted(&self.context, called, record.given()).await
    }

    /// Removes what is noted of a source that no target asks for any more: not before all of it has come to its end, for a target
    /// that is written anew asks again.
    async fn forget(&self, key: &ObjectKey) -> Result<Action, KeepSourceError> {
        self.told.lock().remove(key);
        self.sources.forget(key);
        // Who asks is not known of kinds that cannot be listed.
        if !self.context.watches.unlisted_targets().is_empty() {
            return Ok(Action::Requeue(LOOK));
        }
        let index = &self.context.index;
        let secret = SourceRecord::key(&self.context.namespace, key);
        let Some(seen) = index.find(&secret) else {
            return Ok(Action::AwaitChange);
        };
        let now = self.context.clock.now();
        let record = SourceRecord::read(&seen).map(|(_, record)| record.after(record.given(), now));
        if record.is_some_and(|record| record.replaced().is_some()) {
            return Ok(Action::Requeue(LOOK));
        }
        let uid = object::text(&seen, "/metadata/uid");
        self.context.cluster.delete(&secret, uid).await?;
        Ok(Action::AwaitChange)
    }
}

/// What a target calls; `None` where it calls something of which nobody knows the servers.
fn called_by(target: &Value, places: &Reach) -> Option<Vec<CalledPort>> {
    let services = places
        .holders(target)
        .map(|holder| CalledPort::of(target.pointer(&holder.pointer)?.get("service")?));
    services.collect()
}
