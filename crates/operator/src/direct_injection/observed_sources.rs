//! The sources that are asked for, each read once for all targets that ask for it.

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
    injection::{CaSource, CaSources, Injection, Reach, TargetKinds},
    objects::SourceRecord,
    trust_bundle::{TrustBundle, TrustBundleError},
};

use super::{
    given::is_of_serving_certificate,
    observed_source::{ObservedSource, SourceObjects, named_secret, source_object, watch_of},
};
use crate::context::Context;

/// The sources that are asked for, as they were read last.
#[derive(Default)]
pub(super) struct ObservedSources {
    known: Mutex<HashMap<ObjectKey, Known>>,
    united: Mutex<HashMap<CaSources, Arc<United>>>,
}

/// A source that was read.
struct Known {
    seen: Seen,
    source: Arc<ObservedSource>,
    until: Timestamp,
}

/// What a source was read from.
#[derive(PartialEq)]
struct Seen {
    object: Option<IndexedObject>,
    secret: Option<(ObjectKey, Option<IndexedObject>)>,
    record: Option<IndexedObject>,
}

/// What the sources of a set give together.
pub(super) struct United {
    sources: Vec<Arc<ObservedSource>>,
    kinds: Arc<TargetKinds>,
    /// What is to be injected, if they give anything.
    pub(super) injection: Option<Arc<Injection>>,
    /// What is wrong with some of them.
    pub(super) problem: Option<String>,
    everywhere: Mutex<Everywhere>,
}

/// Whether all targets of a set were once seen to carry what it gives.
enum Everywhere {
    Unknown,
    /// They were not, then.
    NotAt(Instant),
    Seen,
}

/// How often all targets of a set are looked at, each of which asks for that.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

// === impl ObservedSources ===

impl ObservedSources {
    /// A source as it is now; `None` where nothing is known of it yet, or where the rotation of a ServingCertificate gives its
    /// targets what it would.
    pub(super) fn find(&self, key: &ObjectKey, context: &Context) -> Option<Arc<ObservedSource>> {
        let (index, now) = (&context.index, context.clock.now());
        let object = index.find_indexed(key);
        let secret = named_secret(key, || Some(object.as_ref()?.read()));
        let seen = Seen {
            object,
            secret: secret.map(|secret| (secret.clone(), index.find_indexed(&secret))),
            record: index.find_indexed(&SourceRecord::key(&context.namespace, key)),
        };
        let is_unknown = |key: &ObjectKey| !index.is_complete(&watch_of(key));
        match (&seen.object, &seen.secret) {
            (None, _) if is_unknown(key) => return None,
            (_, Some((secret, None))) if is_unknown(secret) => return None,
            _ => {}
        }
        let source = self.read(key, seen, now);
        (!is_issued(key, &source, index)).then_some(source)
    }

    fn read(&self, key: &ObjectKey, seen: Seen, now: Timestamp) -> Arc<ObservedSource> {
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
        let known = Known {
            seen,
            source: source.clone(),
            until: source.until(now),
        };
        all.insert(key.clone(), known);
        source
    }

    /// What a set of sources gives together; `None` where it is not known of all of them, or Windlass issues it.
    pub(super) fn unite(&self, set: &CaSources, context: &Context) -> Option<Arc<United>> {
        let find = |source: &CaSource| self.find(&source_object(source, &context.namespace)?, context);
        let sources: Vec<_> = set.iter().map(find).collect::<Option<_>>()?;
        let kinds = context.index.target_kinds();
        let mut united = self.united.lock();
        if let Some(known) = united.get(set)
            && known.is_of(&sources, &kinds)
        {
            return Some(known.clone());
        }
        let new = Arc::new(United::new(set, sources, kinds));
        united.insert(set.clone(), new.clone());
        Some(new)
    }

    /// Forgets a source that nobody asks for.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let known = self.known.lock().remove(key);
        if let Some(Known { source, .. }) = known {
            let mut united = self.united.lock();
            united.retain(|_, united| !united.sources.iter().any(|one| Arc::ptr_eq(one, &source)));
        }
    }
}

/// Whether the rotation of a ServingCertificate gives targets what a source would.
pub(super) fn is_issued(key: &ObjectKey, source: &ObservedSource, index: &Index) -> bool {
    let object = source.objects.object.as_deref();
    object.is_some_and(|object| is_of_serving_certificate(object, key, index))
}

// === impl United ===

impl United {
    /// What the sources of a set give to targets of these kinds.
    pub(super) fn new(set: &CaSources, sources: Vec<Arc<ObservedSource>>, kinds: Arc<TargetKinds>) -> Self {
        let given = set
            .iter()
            .zip(&sources)
            .map(|(asked, source)| source.given_to(asked));
        let (trusted, problems): (Vec<_>, Vec<_>) = given.unzip();
        let mut problems: Vec<_> = problems.into_iter().flatten().collect();
        let injection = match trust(trusted.into_iter().flatten()) {
            Ok(trust) => {
                let reach = || Reach::asking([set.clone()]).within(kinds.clone());
                trust.map(|trust| Arc::new(Injection::new(trust, reach())))
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
            everywhere: Mutex::new(Everywhere::Unknown),
        }
    }

    /// Whether all of its targets carry what it gives, or were once seen to; `look` looks at all of them. One of a moment ago that
    /// has found one which does not is good for all.
    pub(super) fn is_everywhere(&self, look: impl FnOnce() -> bool) -> bool {
        // Who looks now says it to those who come next.
        let Some(mut everywhere) = self.everywhere.try_lock() else {
            return false;
        };
        match *everywhere {
            Everywhere::Seen => return true,
            Everywhere::NotAt(looked) if looked.elapsed() < LOOK_PAUSE => return false,
            _ => {}
        }
        let is_everywhere = look();
        *everywhere = match is_everywhere {
            true => Everywhere::Seen,
            false => Everywhere::NotAt(Instant::now()),
        };
        is_everywhere
    }

    fn is_of(&self, sources: &[Arc<ObservedSource>], kinds: &Arc<TargetKinds>) -> bool {
        let pairs = self.sources.iter().zip(sources);
        Arc::ptr_eq(&self.kinds, kinds)
            && self.sources.len() == sources.len()
            && pairs.into_iter().all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// The certificates of all sources that give any.
fn trust<'a>(given: impl Iterator<Item = &'a TrustBundle>) -> Result<Option<TrustBundle>, TrustBundleError> {
    let certificates: Vec<_> = given.flat_map(TrustBundle::certificates).cloned().collect();
    match certificates.is_empty() {
        true => Ok(None),
        false => TrustBundle::new(certificates).map(Some),
    }
}
