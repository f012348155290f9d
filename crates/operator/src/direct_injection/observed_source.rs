//! A source of CA certificates that somebody else writes.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{
    Index, Kind, kinds,
    watch::{Selector, Watch},
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::{CaSource, Consent},
    objects::SourceRecord,
    pki::Certificate,
    trust_bundle::TrustBundle,
};

use super::given::{ReadGivenError, read_given, read_given_to_certificate};

/// The objects of a source.
#[derive(Clone, Default)]
pub(super) struct SourceObjects {
    /// The one that targets ask for, if there is one.
    pub(super) object: Option<Arc<Value>>,
    /// Of a Certificate the Secret that it names, if it names one, and if there is one.
    pub(super) secret: Option<(ObjectKey, Option<Arc<Value>>)>,
}

/// A source, and what is noted of it.
pub(super) struct ObservedSource {
    key: ObjectKey,
    pub(super) objects: SourceObjects,
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
        CaSource::Secret { namespace, name, .. } => Some(kinds::SECRET.object(Some(namespace), name)),
        CaSource::Certificate { namespace, name } => Some(kinds::CERTIFICATE.object(Some(namespace), name)),
        CaSource::ApiServer => Some(kinds::CONFIG_MAP.object(Some(own_namespace), API_SERVER_CA)),
    }
}

/// The Secret that a Certificate names; `None` for any other object, which is not read: most sources are Secrets, and there may be
/// many.
pub(super) fn named_secret(key: &ObjectKey, read: impl FnOnce() -> Option<Arc<Value>>) -> Option<ObjectKey> {
    if Kind::from_key(key) != kinds::CERTIFICATE {
        return None;
    }
    let certificate = read()?;
    let name = object::text(&certificate, "/spec/secretName")?;
    Some(kinds::SECRET.object(key.namespace.as_deref(), name))
}

/// The watches that see a source.
pub(super) fn watches_of(key: &ObjectKey, index: &Index) -> impl Iterator<Item = Watch> + use<> {
    let secret = named_secret(key, || index.find(key));
    std::iter::once(watch_of(key)).chain(secret.map(|secret| watch_of(&secret)))
}

/// The watch that sees one object.
pub(super) fn watch_of(object: &ObjectKey) -> Watch {
    Watch::all(Kind::from_key(object))
        .within(object.namespace.as_deref().unwrap_or_default())
        .selected(Selector::Name(object.name.clone()))
}

// === impl ObservedSource ===

impl ObservedSource {
    /// The source `key`, from its objects and the Secret with its record.
    pub(super) fn new(
        key: &ObjectKey,
        objects: SourceObjects,
        record: Option<&Value>,
        now: Timestamp,
    ) -> Self {
        let given = match Kind::from_key(key) == kinds::CERTIFICATE {
            true => {
                let secret = objects.secret.as_ref();
                let secret = secret.map(|(key, secret)| (key, secret.as_deref()));
                read_given_to_certificate(key, secret, now)
            }
            false => read_given(objects.object.as_deref(), key, now),
        };
        let record = record.and_then(SourceRecord::read);
        let record = record.filter(|(of, _)| of == key).map(|(_, record)| record);
        Self {
            key: key.clone(),
            trust: record.as_ref().and_then(|record| record.trust(now).ok()),
            objects,
            given,
            record,
        }
    }

    /// What targets are to trust that ask in this way, and what is wrong.
    pub(super) fn given_to(&self, source: &CaSource) -> (Option<&TrustBundle>, Option<String>) {
        if let CaSource::Secret { consent, .. } = source
            && let Some(problem) = self.is_withheld(*consent)
        {
            return (None, Some(problem));
        }
        let problem = self.given.as_ref().err().map(ToString::to_string);
        (self.trust.as_ref(), problem)
    }

    /// Why a Secret that is there does not let targets have its CA certificates.
    pub(super) fn is_withheld(&self, consent: Consent) -> Option<String> {
        let (secret, annotation) = (self.objects.object.as_deref()?, consent.annotation()?);
        let is_given = object::annotation(secret, annotation) == Some("true");
        (!is_given).then(|| format!("{} does not have the annotation {annotation}: \"true\"", self.key))
    }

    /// What is to be noted of it: what it gives, and what it gave before unless it says that nobody is to trust that. Before anything
    /// is noted of it, it is what others have `handed_over` that it gave.
    pub(super) fn next_record(
        &self,
        handed_over: impl FnOnce() -> BTreeSet<Certificate>,
        now: Timestamp,
    ) -> Option<SourceRecord> {
        let next = match (&self.given, &self.record) {
            (Ok(given), Some(record)) => record.updated(given, now),
            (Ok(given), None) => SourceRecord::with_trusted(handed_over(), given.clone(), now),
            // What was good last stays.
            (Err(_), Some(record)) => record.updated(record.current(), now),
            (Err(_), None) => return None,
        };
        let object = self.objects.object.as_deref();
        let keeps = object.and_then(|object| object::annotation(object, names::KEEP_PREVIOUS_CA));
        Some(if keeps == Some("false") {
            next.without_previous()
        } else {
            next
        })
    }

    /// Until when it is as it is, if nobody changes it.
    pub(super) fn until(&self, now: Timestamp) -> Timestamp {
        let until = self.record.as_ref().and_then(|record| record.next_expiry(now));
        until.unwrap_or(Timestamp::MAX)
    }
}
