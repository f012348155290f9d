//! A source of CA certificates that Windlass does not issue.

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

use super::ca_source_bundle::{ReadCaBundleError, read_ca_bundle, read_certificate_ca_bundle};

#[derive(Clone, Default)]
pub(super) struct SourceObjects {
    /// The object that targets request, if it exists.
    pub(super) object: Option<Arc<Value>>,
    /// For a Certificate: the key of its Secret, and the Secret if it exists.
    pub(super) secret: Option<(ObjectKey, Option<Arc<Value>>)>,
}

/// A source and its record.
pub(super) struct ObservedSource {
    key: ObjectKey,
    pub(super) objects: SourceObjects,
    /// CA certificates of the source, or why there are none.
    pub(super) current: Result<TrustBundle, ReadCaBundleError>,
    /// The stored record.
    pub(super) record: Option<SourceRecord>,
    /// The trust bundle for targets according to the record.
    pub(super) trust: Option<TrustBundle>,
}

/// The ConfigMap with the API server's CA in every namespace: `RootCACertConfigMapName` of
/// kube-controller-manager's rootcacertpublisher.
const API_SERVER_CA: &str = "kube-root-ca.crt";

/// Returns the object that `source` refers to, or `None` if Windlass issues its CA.
pub(super) fn source_object(source: &CaSource, own_namespace: &str) -> Option<ObjectKey> {
    match source {
        CaSource::ServingCertificate { .. } => None,
        CaSource::Secret { namespace, name, .. } => Some(kinds::SECRET.object(Some(namespace), name)),
        CaSource::Certificate { namespace, name } => Some(kinds::CERTIFICATE.object(Some(namespace), name)),
        CaSource::ApiServer => Some(kinds::CONFIG_MAP.object(Some(own_namespace), API_SERVER_CA)),
    }
}

/// Returns the Secret that a Certificate names, or `None` for any other object. Calls `read` only for
/// Certificates, because most sources are Secrets, possibly many.
pub(super) fn named_secret(key: &ObjectKey, read: impl FnOnce() -> Option<Arc<Value>>) -> Option<ObjectKey> {
    if Kind::from_key(key) != kinds::CERTIFICATE {
        return None;
    }
    let certificate = read()?;
    let name = object::text(&certificate, "/spec/secretName")?;
    Some(kinds::SECRET.object(key.namespace.as_deref(), name))
}

pub(super) fn source_watches(key: &ObjectKey, index: &Index) -> impl Iterator<Item = Watch> + use<> {
    let secret = named_secret(key, || index.find(key));
    std::iter::once(object_watch(key)).chain(secret.map(|secret| object_watch(&secret)))
}

pub(super) fn object_watch(object: &ObjectKey) -> Watch {
    Watch::all(Kind::from_key(object))
        .within(object.namespace.as_deref().unwrap_or_default())
        .selected(Selector::Name(object.name.clone()))
}

impl ObservedSource {
    /// Creates the source `key` from its objects and the Secret with its record.
    pub(super) fn new(
        key: &ObjectKey,
        objects: SourceObjects,
        record: Option<&Value>,
        now: Timestamp,
    ) -> Self {
        let current = match Kind::from_key(key) == kinds::CERTIFICATE {
            true => {
                let secret = objects.secret.as_ref();
                let secret = secret.map(|(key, secret)| (key, secret.as_deref()));
                read_certificate_ca_bundle(key, secret, now)
            }
            false => read_ca_bundle(objects.object.as_deref(), key, now),
        };
        let record = record.and_then(SourceRecord::read);
        let record = record.filter(|(of, _)| of == key).map(|(_, record)| record);
        Self {
            key: key.clone(),
            trust: record.as_ref().and_then(|record| record.trust(now).ok()),
            objects,
            current,
            record,
        }
    }

    /// Returns the trust bundle for targets that request the source in this way, and the problem, if any.
    pub(super) fn bundle_for(&self, source: &CaSource) -> (Option<&TrustBundle>, Option<String>) {
        if let CaSource::Secret { consent, .. } = source
            && let Some(problem) = self.consent_problem(*consent)
        {
            return (None, Some(problem));
        }
        let problem = self.current.as_ref().err().map(ToString::to_string);
        (self.trust.as_ref(), problem)
    }

    /// Returns why an existing Secret does not allow this kind of request, or `None` if it does.
    pub(super) fn consent_problem(&self, consent: Consent) -> Option<String> {
        let (secret, annotation) = (self.objects.object.as_deref()?, consent.annotation()?);
        let is_allowed = object::annotation(secret, annotation) == Some("true");
        (!is_allowed).then(|| format!("{} does not have the annotation {annotation}: \"true\"", self.key))
    }

    /// Returns the record to store: the current and previous CAs, or only the current one if the source
    /// forbids to trust previous ones. A new record counts the certificates in `common_previous_cas` as previous CAs.
    pub(super) fn next_record(
        &self,
        common_previous_cas: impl FnOnce() -> BTreeSet<Certificate>,
        now: Timestamp,
    ) -> Option<SourceRecord> {
        let next = match (&self.current, &self.record) {
            (Ok(bundle), Some(record)) => record.updated(bundle, now),
            (Ok(bundle), None) => SourceRecord::with_trusted(common_previous_cas(), bundle.clone(), now),
            // Keep the last valid CA.
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

    /// Returns when its trust bundle changes because a certificate expires.
    pub(super) fn valid_until(&self, now: Timestamp) -> Timestamp {
        let until = self.record.as_ref().and_then(|record| record.next_expiry(now));
        until.unwrap_or(Timestamp::MAX)
    }
}
