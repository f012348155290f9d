//! Records of CA sources that Windlass does not issue. When a source changes its CA, targets keep trusting
//! the previous one until every server behind them uses the new one.
//!
//! ```text
//! the source has B -> record {B, before A} -> targets get {A,B} -> every server uses B -> record {B} -> targets get {B}
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
    injection::{Consent, InjectionScope},
    objects::SourceRecord,
    rotation::Timing,
    trust_bundle::TrustBundle,
};

use super::{
    ca_transition::common_previous_cas, observed_source::ObservedSource, observed_sources::ObservedSources,
    requests::InjectionRequests,
};
use crate::{context::Context, install::traffic::CalledPort, servers::are_trusted};

/// Reconciles the records of sources.
pub(super) struct CaSourceReconciler {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) sources: Arc<ObservedSources>,
    pub(super) requests: Arc<Mutex<InjectionRequests>>,
    /// Queue of targets to reconcile.
    pub(super) targets: Arc<Queue<ObjectKey>>,
    /// The last state of each source for which its targets were queued.
    pub(super) last_states: Mutex<HashMap<ObjectKey, SourceState>>,
}

/// The state of a source that affects its targets.
#[derive(PartialEq, Eq)]
pub(super) struct SourceState {
    trust: Option<TrustBundle>,
    problem: Option<String>,
    withheld: [bool; Consent::ALL.len()],
}

/// Why the reconciliation of a source failed and is retried.
#[derive(Debug, Error)]
pub(super) enum CaSourceError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The record cannot be written as JSON.
    #[error("cannot encode the record of a source")]
    Encode(#[from] serde_json::Error),
}

/// Time between reconciliations of a source without changes.
const RESYNC: Duration = Duration::from_secs(600);

/// Backoff for probing servers that do not use the new CA yet: the time since the change, divided by this.
const BACKOFF_DIVISOR: i32 = 8;

impl CaSourceReconciler {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, CaSourceError> {
        if !self.requests.lock().is_requested(&key) {
            return self.forget(&key).await;
        }
        let Some(source) = self.sources.find(&key, &self.context) else {
            return Ok(Action::AwaitChange);
        };
        self.notify_targets(&key, &source);
        let now = self.context.clock.now();
        let common_previous_cas = || common_previous_cas(&key, &self.requests.lock(), &self.context.index);
        let Some(mut record) = source.next_record(common_previous_cas, now) else {
            return Ok(Action::AwaitChange);
        };
        let waits = record
            .last_replaced()
            .map(|replaced| now.duration_since(replaced));
        if let Some(waited) = waits
            && waited >= self.timing.overlap
            && source.current.is_ok()
            && self.is_used_by_all_servers(&key, &record).await
        {
            record = record.without_previous();
            info!(source = %key, "Every server uses the current CA of the source");
        }
        if source.record.as_ref() != Some(&record) {
            self.write_record(&key, &source, &record).await?;
        }
        let Some(waited) = waits.filter(|_| record.last_replaced().is_some()) else {
            return Ok(Action::Requeue(RESYNC));
        };
        let pause = (waited / BACKOFF_DIVISOR).clamp(self.timing.poll, self.timing.longest_sleep);
        Ok(Action::Requeue(pause.unsigned_abs()))
    }

    /// Queues the targets of a source if its state has changed.
    fn notify_targets(&self, key: &ObjectKey, source: &ObservedSource) {
        let state = SourceState {
            trust: source.trust.clone(),
            problem: source.current.as_ref().err().map(ToString::to_string),
            withheld: Consent::ALL.map(|consent| source.consent_problem(consent).is_some()),
        };
        let mut all = self.last_states.lock();
        if all.get(key) != Some(&state) {
            all.insert(key.clone(), state);
            let requests = self.requests.lock();
            requests
                .targets(key)
                .for_each(|target| self.targets.add(target.clone()));
        }
    }

    /// Writes the record of a source. A watch delivers the result.
    async fn write_record(
        &self,
        key: &ObjectKey,
        source: &ObservedSource,
        record: &SourceRecord,
    ) -> Result<(), CaSourceError> {
        let cluster = &self.context.cluster;
        let secret = SourceRecord::key(&self.context.namespace, key);
        // The watch may be late and omits a record without its label, so merge with a newer record on the API
        // server.
        let live = cluster.read(&secret).await?;
        let noted = live.as_ref().and_then(SourceRecord::read);
        let noted = noted.filter(|(of, noted)| of == key && source.record.as_ref() != Some(noted));
        let later = noted.map(|(_, noted)| noted.updated(record.current(), self.context.clock.now()));
        let version = live
            .as_ref()
            .and_then(|live| object::text(live, "/metadata/resourceVersion"));
        let body = later.as_ref().unwrap_or(record).write(&secret, key, version)?;
        match version {
            Some(_) => cluster.replace(&body, names::CERTIFICATES).await?,
            None => cluster.create(&body, names::CERTIFICATES).await?,
        };
        info!(source = %key, "Recorded the CA of the source");
        Ok(())
    }

    /// Reports whether every server that targets of a source call uses the current CA of that source. Returns
    /// `false` if a server cannot be probed.
    async fn is_used_by_all_servers(&self, key: &ObjectKey, record: &SourceRecord) -> bool {
        let index = &self.context.index;
        let targets: Vec<_> = self.requests.lock().targets(key).cloned().collect();
        let mut called = BTreeSet::new();
        let places = InjectionScope::everything().with_kinds(index.target_kinds());
        for target in targets.iter().filter_map(|target| index.find(target)) {
            match called_services(&target, &places) {
                Some(ports) => called.extend(ports),
                None => return false,
            }
        }
        are_trusted(&self.context, called, record.current()).await
    }

    /// Deletes the record of a source that no target requests. Waits until all previous CAs have expired,
    /// since a recreated target may request the source again.
    async fn forget(&self, key: &ObjectKey) -> Result<Action, CaSourceError> {
        self.last_states.lock().remove(key);
        self.sources.forget(key);
        // Unlisted kinds may have targets that request the source.
        if !self.context.watches.unlisted_targets().is_empty() {
            return Ok(Action::Requeue(RESYNC));
        }
        let index = &self.context.index;
        let secret = SourceRecord::key(&self.context.namespace, key);
        let Some(seen) = index.find(&secret) else {
            return Ok(Action::AwaitChange);
        };
        let now = self.context.clock.now();
        let record = SourceRecord::read(&seen).map(|(_, record)| record.updated(record.current(), now));
        if record.is_some_and(|record| record.last_replaced().is_some()) {
            return Ok(Action::Requeue(RESYNC));
        }
        let uid = object::text(&seen, "/metadata/uid");
        self.context.cluster.delete(&secret, uid).await?;
        Ok(Action::AwaitChange)
    }
}

/// Returns the Services that a target calls, or `None` if it calls anything else, whose servers are not
/// known.
fn called_services(target: &Value, places: &InjectionScope) -> Option<Vec<CalledPort>> {
    let services = places
        .holders(target)
        .map(|holder| CalledPort::from_reference(target.pointer(&holder.pointer)?.get("service")?));
    services.collect()
}
