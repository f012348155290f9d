//! Cache of the requested sources, each read once for all of its targets.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_cluster::{Index, IndexedObject};
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{CaSource, CaSources, Injection, InjectionScope, TargetKinds},
    objects::SourceRecord,
    trust_bundle::{TrustBundle, TrustBundleError},
};

use super::{
    ca_source_bundle::belongs_to_serving_certificate,
    observed_source::{ObservedSource, SourceObjects, named_secret, object_watch, source_object},
};
use crate::context::Context;

/// The requested sources as last read.
#[derive(Default)]
pub(super) struct ObservedSources {
    known: Mutex<HashMap<ObjectKey, CachedSource>>,
    combined: Mutex<HashMap<CaSources, Arc<CombinedSources>>>,
}

struct CachedSource {
    seen: SourceVersions,
    source: Arc<ObservedSource>,
    until: Timestamp,
}

/// The objects that a source was read from.
#[derive(PartialEq)]
struct SourceVersions {
    object: Option<IndexedObject>,
    secret: Option<(ObjectKey, Option<IndexedObject>)>,
    record: Option<IndexedObject>,
}

/// The combined CA certificates of a set of sources.
pub(super) struct CombinedSources {
    sources: Vec<Arc<ObservedSource>>,
    kinds: Arc<TargetKinds>,
    /// The injection, if a source has CA certificates.
    pub(super) injection: Option<Arc<Injection>>,
    /// Problems of some of the sources.
    pub(super) problem: Option<String>,
    distribution: Mutex<Distribution>,
}

/// Whether all targets of a set have been found to contain the injection.
enum Distribution {
    Unknown,
    /// Some targets lacked it at this time.
    Incomplete(Instant),
    Complete,
}

/// Minimum time between checks of all targets of a set, which each of these targets requests.
const CHECK_PAUSE: Duration = Duration::from_millis(500);

impl ObservedSources {
    /// Returns a source, or `None` if it has not been read yet or if the rotation of a ServingCertificate
    /// updates its targets.
    pub(super) fn find(&self, key: &ObjectKey, context: &Context) -> Option<Arc<ObservedSource>> {
        let (index, now) = (&context.index, context.clock.now());
        let object = index.find_indexed(key);
        let secret = named_secret(key, || Some(object.as_ref()?.read()));
        let seen = SourceVersions {
            object,
            secret: secret.map(|secret| (secret.clone(), index.find_indexed(&secret))),
            record: index.find_indexed(&SourceRecord::key(&context.namespace, key)),
        };
        let is_unknown = |key: &ObjectKey| !index.is_complete(&object_watch(key));
        match (&seen.object, &seen.secret) {
            (None, _) if is_unknown(key) => return None,
            (_, Some((secret, None))) if is_unknown(secret) => return None,
            _ => {}
        }
        let source = self.read(key, seen, now);
        (!is_managed_by_rotation(key, &source, index)).then_some(source)
    }

    fn read(&self, key: &ObjectKey, seen: SourceVersions, now: Timestamp) -> Arc<ObservedSource> {
        let mut all = self.known.lock();
        if let Some(known) = all.get(key)
            && known.seen == seen
            && now < known.until
        {
            return known.source.clone();
        }
        let read = |object: &Option<IndexedObject>| object.as_ref().map(IndexedObject::read);
        let objects = SourceObjects {
            object: read(&seen.object),
            secret: seen
                .secret
                .as_ref()
                .map(|(key, secret)| (key.clone(), read(secret))),
        };
        let record = read(&seen.record);
        let source = Arc::new(ObservedSource::new(key, objects, record.as_deref(), now));
        let known = CachedSource {
            seen,
            source: source.clone(),
            until: source.valid_until(now),
        };
        all.insert(key.clone(), known);
        source
    }

    /// Combines a set of sources. Returns `None` if one has not been read yet or if Windlass issues it.
    pub(super) fn combine(&self, set: &CaSources, context: &Context) -> Option<Arc<CombinedSources>> {
        let find = |source: &CaSource| self.find(&source_object(source, &context.namespace)?, context);
        let sources: Vec<_> = set.iter().map(find).collect::<Option<_>>()?;
        let kinds = context.index.target_kinds();
        let mut combined = self.combined.lock();
        if let Some(known) = combined.get(set)
            && known.is_from(&sources, &kinds)
        {
            return Some(known.clone());
        }
        let new = Arc::new(CombinedSources::new(set, sources, kinds));
        combined.insert(set.clone(), new.clone());
        Some(new)
    }

    /// Forgets a source that no target requests.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let known = self.known.lock().remove(key);
        if let Some(CachedSource { source, .. }) = known {
            let mut combined = self.combined.lock();
            combined.retain(|_, combined| !combined.sources.iter().any(|one| Arc::ptr_eq(one, &source)));
        }
    }
}

/// Reports whether the rotation of a ServingCertificate updates the targets of this source.
pub(super) fn is_managed_by_rotation(key: &ObjectKey, source: &ObservedSource, index: &Index) -> bool {
    let object = source.objects.object.as_deref();
    object.is_some_and(|object| belongs_to_serving_certificate(object, key, index))
}

impl CombinedSources {
    /// Combines sources for targets of these kinds.
    pub(super) fn new(set: &CaSources, sources: Vec<Arc<ObservedSource>>, kinds: Arc<TargetKinds>) -> Self {
        let bundles = set
            .iter()
            .zip(&sources)
            .map(|(requested, source)| source.bundle_for(requested));
        let (trusted, problems): (Vec<_>, Vec<_>) = bundles.unzip();
        let mut problems: Vec<_> = problems.into_iter().flatten().collect();
        let injection = match combine_bundles(trusted.into_iter().flatten()) {
            Ok(trust) => {
                let scope = || InjectionScope::requesting([set.clone()]).with_kinds(kinds.clone());
                trust.map(|trust| Arc::new(Injection::new(trust, scope())))
            }
            Err(error) => {
                problems.push(error.to_string());
                None
            }
        };
        Self {
            sources,
            kinds,
            injection,
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
            distribution: Mutex::new(Distribution::Unknown),
        }
    }

    /// Reports whether all targets have been found to contain the injection. `check` checks all of them. A
    /// negative result is reused for a moment.
    pub(super) fn is_distributed(&self, check: impl FnOnce() -> bool) -> bool {
        // Another thread is checking. The next call will get its result.
        let Some(mut distribution) = self.distribution.try_lock() else {
            return false;
        };
        match *distribution {
            Distribution::Complete => return true,
            Distribution::Incomplete(checked) if checked.elapsed() < CHECK_PAUSE => return false,
            _ => {}
        }
        let is_distributed = check();
        *distribution = match is_distributed {
            true => Distribution::Complete,
            false => Distribution::Incomplete(Instant::now()),
        };
        is_distributed
    }

    fn is_from(&self, sources: &[Arc<ObservedSource>], kinds: &Arc<TargetKinds>) -> bool {
        let pairs = self.sources.iter().zip(sources);
        Arc::ptr_eq(&self.kinds, kinds)
            && self.sources.len() == sources.len()
            && pairs.into_iter().all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// Combines the certificates of all sources that have any.
fn combine_bundles<'a>(
    bundles: impl Iterator<Item = &'a TrustBundle>,
) -> Result<Option<TrustBundle>, TrustBundleError> {
    let certificates: Vec<_> = bundles.flat_map(TrustBundle::certificates).cloned().collect();
    match certificates.is_empty() {
        true => Ok(None),
        false => TrustBundle::new(certificates).map(Some),
    }
}
