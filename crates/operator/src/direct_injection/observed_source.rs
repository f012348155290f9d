//! A source of CA certificates that somebody else writes.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{
    Kind, kinds,
    watch::{Selector, Watch},
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{injection::CaSource, objects::SourceRecord, trust_bundle::TrustBundle};

use super::given::{ReadGivenError, read_given};

/// A source, and what is noted of it.
pub(super) struct ObservedSource {
    /// The object itself, if there is one.
    pub(super) object: Option<Arc<Value>>,
    /// What it gives, or why it gives nothing.
    pub(super) given: Result<TrustBundle, ReadGivenError>,
    /// What is noted of it.
    pub(super) record: Option<SourceRecord>,
    /// What targets are to trust by that, if they may.
    pub(super) trust: Option<TrustBundle>,
}

/// Where every namespace has the CA of the API server: `RootCACertConfigMapName` of kube-controller-manager's rootcacertpublisher.
const API_SERVER_CA: &str = "kube-root-ca.crt";

/// The object that gives what `source` asks for; `None` where Windlass issues it.
pub(super) fn source_object(source: &CaSource, own_namespace: &str) -> Option<ObjectKey> {
    match source {
        CaSource::ServingCertificate { .. } => None,
        CaSource::Secret { namespace, name } => Some(kinds::SECRET.object(Some(namespace), name)),
        CaSource::ApiServer => Some(kinds::CONFIG_MAP.object(Some(own_namespace), API_SERVER_CA)),
    }
}

/// What targets ask for that ask for an object.
pub(super) fn asked_for(object: &ObjectKey) -> CaSource {
    if Kind::of(object) == kinds::CONFIG_MAP {
        return CaSource::ApiServer;
    }
    CaSource::Secret {
        namespace: object.namespace.clone().unwrap_or_default(),
        name: object.name.clone(),
    }
}

/// The watch that sees a source.
pub(super) fn watch_of(object: &ObjectKey) -> Watch {
    Watch::all(Kind::of(object))
        .within(object.namespace.as_deref().unwrap_or_default())
        .selected(Selector::Name(object.name.clone()))
}

// === impl ObservedSource ===

impl ObservedSource {
    /// The source `key`, from its object and the Secret with its record.
    pub(super) fn new(
        key: &ObjectKey,
        object: Option<Arc<Value>>,
        record: Option<&Value>,
        now: Timestamp,
    ) -> Self {
        let given = read_given(object.as_deref(), key, now);
        let record = record.and_then(SourceRecord::read);
        let record = record.filter(|(of, _)| of == key).map(|(_, record)| record);
        let is_allowed = !matches!(given, Err(ReadGivenError::NotAllowed { .. }));
        let trusted = record.as_ref().filter(|_| is_allowed);
        Self {
            trust: trusted.and_then(|record| record.trust(now).ok()),
            object,
            given,
            record,
        }
    }

    /// What is to be noted of it: what it gives, and what it gave before unless it says that nobody is to trust that.
    pub(super) fn next_record(&self, now: Timestamp) -> Option<SourceRecord> {
        let next = match (&self.given, &self.record) {
            (Ok(given), Some(record)) => record.after(given, now),
            (Ok(given), None) => SourceRecord::new(given.clone()),
            // What was good last stays.
            (Err(_), Some(record)) => record.after(record.given(), now),
            (Err(_), None) => return None,
        };
        let object = self.object.as_deref();
        let keeps = object.and_then(|object| object::annotation(object, names::KEEP_PREVIOUS_CA));
        Some(if keeps == Some("false") {
            next.settled()
        } else {
            next
        })
    }

    /// Until when it is as it is, if nobody changes it.
    pub(super) fn until(&self, now: Timestamp) -> Timestamp {
        let until = self.record.as_ref().and_then(|record| record.until(now));
        until.unwrap_or(Timestamp::MAX)
    }
}
