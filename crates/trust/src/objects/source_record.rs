//! The Secret that records the CA certificates of a source that Windlass does not write.
//!
//! Such a source changes in one step, while servers present certificates of the previous CA until they
//! reload. So targets keep trusting the previous CA until no server is seen to need it, or for a day.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_object::{
    InCluster, ObjectKey,
    ca_injectors::CERT_MANAGER_VERSION,
    names, object,
    secret_keys::{CA_CERTIFICATES, PREVIOUS_CAS},
    text::hexadecimal,
};

use super::secret::{encoded, label_value};
use crate::{
    pki::{Certificate, pem},
    trust_bundle::{TrustBundle, TrustBundleError},
};

/// How long a previous CA stays trusted at most.
pub const MAX_OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// How many previous CAs stay trusted at most: the latest ones.
const MAX_PREVIOUS: usize = 8;

/// The current certificates of a source, and previous ones that are still trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRecord {
    current: TrustBundle,
    /// The earliest first.
    previous: Vec<PreviousCa>,
}

/// A certificate that the source no longer contains.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PreviousCa {
    certificate: Certificate,
    replaced: Timestamp,
}

/// The JSON form of a [`PreviousCa`].
#[derive(Serialize, Deserialize)]
struct Stored {
    certificate: String,
    replaced: Timestamp,
}

impl SourceRecord {
    /// Creates the record of a source that was not recorded before.
    pub fn new(current: TrustBundle) -> Self {
        Self {
            current,
            previous: Vec::new(),
        }
    }

    /// Creates the record of a source whose targets trust other CAs already, because servers may present
    /// certificates of these.
    pub fn with_trusted(
        before: impl IntoIterator<Item = Certificate>,
        current: TrustBundle,
        now: Timestamp,
    ) -> Self {
        match TrustBundle::new(before) {
            Ok(before) => Self::new(before).updated(&current, now),
            Err(_) => Self::new(current),
        }
    }

    /// Returns the record for the certificates that the source contains now.
    #[must_use]
    pub fn updated(&self, current: &TrustBundle, now: Timestamp) -> Self {
        let certificates = self.current.certificates().iter().cloned();
        let replaced = certificates.map(|certificate| PreviousCa {
            certificate,
            replaced: now,
        });
        let mut previous: Vec<_> = self.previous.iter().cloned().chain(replaced).collect();
        previous.retain(|previous| {
            !current.certificates().contains(&previous.certificate) && !previous.is_over(now)
        });
        previous.drain(..previous.len().saturating_sub(MAX_PREVIOUS));
        let mut record = Self {
            current: current.clone(),
            previous,
        };
        while !record.previous.is_empty() && record.all().is_err() {
            record.previous.remove(0);
        }
        record
    }

    /// Returns the record without previous CAs, for when no server needs them.
    #[must_use]
    pub fn without_previous(&self) -> Self {
        Self::new(self.current.clone())
    }

    /// Returns the certificates that the source contained when it was last read.
    pub fn current(&self) -> &TrustBundle {
        &self.current
    }

    /// Returns when a still trusted certificate was last removed from the source; `None` if there is none.
    pub fn last_replaced(&self) -> Option<Timestamp> {
        self.previous.iter().map(|previous| previous.replaced).max()
    }

    /// Returns when a certificate next stops being trusted, if nothing else changes.
    pub fn next_expiry(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.previous.iter().map(PreviousCa::until);
        ends.chain(self.current.certificates().iter().map(Certificate::not_after))
            .filter(|end| *end > now)
            .min()
    }

    /// Returns the certificates that targets must trust.
    ///
    /// # Errors
    ///
    /// If all of them have expired.
    pub fn trust(&self, now: Timestamp) -> Result<TrustBundle, TrustBundleError> {
        self.all()?.without_expired(now)
    }

    fn all(&self) -> Result<TrustBundle, TrustBundleError> {
        let previous = self.previous.iter().map(|previous| &previous.certificate);
        TrustBundle::new(previous.chain(self.current.certificates()).cloned())
    }

    /// Returns the key of the Secret, which is in the operator's namespace. CA Secrets of ServingCertificates
    /// have a dot in their names, these have not.
    pub fn key(own_namespace: &str, source: &ObjectKey) -> ObjectKey {
        let hash = Sha256::digest(source.to_string());
        ObjectKey {
            cluster: InCluster::Local,
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(own_namespace.to_owned()),
            name: format!("ca-source-{}", hexadecimal(&hash[..10])),
        }
    }

    /// Returns the source that a Secret records; `None` for any other Secret.
    pub fn source(secret: &Value) -> Option<ObjectKey> {
        let source = object::annotation(secret, names::CA_SOURCE)?;
        let mut parts = source.split('/').map(str::to_owned);
        let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let api_version = match &*kind {
            "Certificate" => CERT_MANAGER_VERSION,
            _ => "v1",
        };
        Some(ObjectKey {
            cluster: InCluster::Local,
            api_version: api_version.to_owned(),
            kind,
            namespace: Some(namespace),
            name,
        })
    }

    /// Parses a Secret; `None` for any other Secret or a damaged one.
    pub fn read(secret: &Value) -> Option<(ObjectKey, Self)> {
        let source = Self::source(secret)?;
        let current = object::data(secret, CA_CERTIFICATES)?;
        let (current, _) = TrustBundle::from_foreign_pem(&current).ok()?;
        let stored: Vec<Stored> = serde_json::from_slice(&object::data(secret, PREVIOUS_CAS)?).ok()?;
        let previous = stored.into_iter().map(|stored| {
            let certificate = pem::read(stored.certificate.as_bytes())
                .certificates
                .into_iter()
                .next()?;
            Some(PreviousCa {
                certificate,
                replaced: stored.replaced,
            })
        });
        let previous = previous.collect::<Option<_>>()?;
        Some((source, Self { current, previous }))
    }

    /// Returns the Secret `key`, at the resourceVersion that it replaces.
    ///
    /// # Errors
    ///
    /// If the certificates cannot be encoded as JSON.
    pub fn write(
        &self,
        key: &ObjectKey,
        source: &ObjectKey,
        replacing: Option<&str>,
    ) -> Result<Value, serde_json::Error> {
        let previous = self.previous.iter().map(|previous| Stored {
            certificate: previous.certificate.to_pem(),
            replaced: previous.replaced,
        });
        let previous = serde_json::to_vec(&previous.collect::<Vec<_>>())?;
        let namespace = source.namespace.as_deref().unwrap_or_default();
        let whole = format!("{}/{namespace}/{}", source.kind, source.name);
        let mut secret = json!({
            "apiVersion": key.api_version,
            "kind": key.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": { names::CA_SOURCE: label_value(&source.name) },
                "annotations": { names::CA_SOURCE: whole },
            },
            "type": "Opaque",
            "data": { CA_CERTIFICATES: encoded(self.current.to_pem()), PREVIOUS_CAS: encoded(previous) },
        });
        if let Some(version) = replacing {
            secret["metadata"]["resourceVersion"] = version.into();
        }
        Ok(secret)
    }
}

impl PreviousCa {
    /// Returns until when the previous CA is trusted.
    fn until(&self) -> Timestamp {
        let end = self.replaced.checked_add(MAX_OVERLAP).unwrap_or(Timestamp::MAX);
        end.min(self.certificate.not_after())
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.until()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::pki::sample::{self, DAY, NOW};

    fn bundle(generations: &[u32]) -> TrustBundle {
        let certificates = generations.iter().map(|generation| certificate(*generation));
        TrustBundle::new(certificates).unwrap()
    }

    fn certificate(generation: u32) -> Certificate {
        static ALL: LazyLock<Vec<Certificate>> = LazyLock::new(|| {
            let generations = 0..6;
            generations
                .map(|generation| sample::authority(generation).certificate().clone())
                .collect()
        });
        ALL[generation as usize].clone()
    }

    fn source() -> ObjectKey {
        ObjectKey {
            cluster: InCluster::Local,
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some("system".to_owned()),
            name: "hook-cert".to_owned(),
        }
    }

    #[test]
    fn a_previous_ca_stays_trusted_until_it_is_unused_or_for_a_day() {
        let first = SourceRecord::new(bundle(&[1]));
        assert_eq!(first.trust(NOW).unwrap(), bundle(&[1]));
        assert_eq!(first.last_replaced(), None);
        assert_eq!(first.updated(&bundle(&[1]), NOW), first, "nothing to write");
        let swapped = first.updated(&bundle(&[2]), NOW);
        assert_eq!(swapped.trust(NOW).unwrap(), bundle(&[1, 2]));
        assert_eq!(
            (swapped.current(), swapped.last_replaced()),
            (&bundle(&[2]), Some(NOW))
        );
        let later = |hours| NOW + SignedDuration::from_hours(hours);
        assert_eq!(swapped.updated(&bundle(&[2]), later(23)), swapped);
        assert_eq!(swapped.next_expiry(NOW), Some(later(24)));
        assert_eq!(
            swapped.updated(&bundle(&[2]), later(24)),
            SourceRecord::new(bundle(&[2]))
        );
        let back = swapped.updated(&bundle(&[1]), later(1));
        assert_eq!(back.trust(NOW).unwrap(), bundle(&[1, 2]));
        assert_eq!(
            back.updated(&bundle(&[1]), later(24)),
            back,
            "2 was the current CA for one more hour"
        );
        assert_eq!(swapped.without_previous(), SourceRecord::new(bundle(&[2])));
        let third = swapped.updated(&bundle(&[3]), later(1));
        assert_eq!(third.trust(NOW).unwrap(), bundle(&[1, 2, 3]));
        assert_eq!(
            third.updated(&bundle(&[3]), later(24)).trust(NOW).unwrap(),
            bundle(&[2, 3])
        );
    }

    #[test]
    fn expired_cas_are_not_trusted() {
        let swapped = SourceRecord::new(bundle(&[1])).updated(&bundle(&[2]), NOW);
        let end = certificate(1).not_after();
        let over = end + DAY * 365 * 100;
        assert!(swapped.trust(over).is_err());
        assert_eq!(SourceRecord::new(bundle(&[1])).next_expiry(NOW), Some(end));
        assert_eq!(SourceRecord::new(bundle(&[1])).next_expiry(end), None);
    }

    #[test]
    fn a_damaged_secret_is_ignored() {
        let key = SourceRecord::key("windlass-system", &source());
        let record = SourceRecord::new(bundle(&[1])).updated(&bundle(&[2]), NOW);
        let secret = record.write(&key, &source(), None).unwrap();
        for pointer in [
            "/metadata/annotations",
            "/data",
            "/data/ca.crt",
            "/data/previous.json",
        ] {
            let mut damaged = secret.clone();
            *damaged.pointer_mut(pointer).unwrap() = "aGk=".into();
            assert_eq!(SourceRecord::read(&damaged), None, "{pointer}");
        }
    }

    proptest! {
        #[test]
        fn every_record_trusts_its_source_and_round_trips(
            current in prop::collection::vec((prop::collection::vec(1..6_u32, 1..4), 0..40_i64), 1..20),
        ) {
            let key = SourceRecord::key("windlass-system", &source());
            let mut now = NOW;
            let mut record = SourceRecord::new(bundle(&current[0].0));
            for (generations, hours) in current {
                now += SignedDuration::from_hours(hours);
                let before = record.clone();
                record = record.updated(&bundle(&generations), now);
                let trust = record.trust(now).unwrap();
                prop_assert!(generations.iter().all(|current| trust.certificates().contains(&certificate(*current))));
                let until_now = before.current().certificates();
                prop_assert!(until_now.iter().all(|current| trust.certificates().contains(current)), "each step keeps the previous certificates trusted");
                prop_assert!(record.previous.len() <= MAX_PREVIOUS);
                let secret = record.write(&key, &source(), Some("7")).unwrap();
                prop_assert_eq!(SourceRecord::read(&secret), Some((source(), record.clone())));
                prop_assert_eq!(record.updated(&bundle(&generations), now), record.clone());
            }
        }
    }
}
