//! The Secret in which is noted what a source of CA certificates gives that somebody else writes.
//!
//! Such a source is swapped in one step, and servers present certificates of the CA before until they have read what is new. So
//! targets go on trusting what the source gave before, until no server is seen to need it, or a day is over.

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

/// How long what a source gave before is trusted at the longest.
pub const LONGEST_OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// How many certificates that a source gave before are trusted at the most: the latest.
const MOST_PREVIOUS: usize = 8;

/// What a source gives, and what it gave before that is trusted still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRecord {
    given: TrustBundle,
    /// The earliest first.
    previous: Vec<PreviousCa>,
}

/// A certificate that a source gives no more.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PreviousCa {
    certificate: Certificate,
    replaced: Timestamp,
}

/// The same as JSON.
#[derive(Serialize, Deserialize)]
struct Stored {
    certificate: String,
    replaced: Timestamp,
}

// === impl SourceRecord ===

impl SourceRecord {
    /// Of a source that is looked at for the first time.
    pub fn new(given: TrustBundle) -> Self {
        Self {
            given,
            previous: Vec::new(),
        }
    }

    /// The same where targets trust these already, by somebody else's doing: servers may present what they have issued.
    pub fn succeeding(
        before: impl IntoIterator<Item = Certificate>,
        given: TrustBundle,
        now: Timestamp,
    ) -> Self {
        match TrustBundle::new(before) {
            Ok(before) => Self::new(before).after(&given, now),
            Err(_) => Self::new(given),
        }
    }

    /// What is to be noted when the source gives this now.
    #[must_use]
    pub fn after(&self, given: &TrustBundle, now: Timestamp) -> Self {
        let certificates = self.given.certificates().iter().cloned();
        let replaced = certificates.map(|certificate| PreviousCa {
            certificate,
            replaced: now,
        });
        let mut previous: Vec<_> = self.previous.iter().cloned().chain(replaced).collect();
        previous.retain(|previous| {
            !given.certificates().contains(&previous.certificate) && !previous.is_over(now)
        });
        previous.drain(..previous.len().saturating_sub(MOST_PREVIOUS));
        let mut record = Self {
            given: given.clone(),
            previous,
        };
        while !record.previous.is_empty() && record.all().is_err() {
            record.previous.remove(0);
        }
        record
    }

    /// What is to be noted when no server needs what the source gave before.
    #[must_use]
    pub fn settled(&self) -> Self {
        Self::new(self.given.clone())
    }

    /// What the source gave when it could be read last.
    pub fn given(&self) -> &TrustBundle {
        &self.given
    }

    /// When something was taken out of the source last, of which a part is trusted still; `None` where nothing is.
    pub fn replaced(&self) -> Option<Timestamp> {
        self.previous.iter().map(|previous| previous.replaced).max()
    }

    /// When something is trusted no more, if nothing happens before.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.previous.iter().map(PreviousCa::until);
        ends.chain(self.given.certificates().iter().map(Certificate::not_after))
            .filter(|end| *end > now)
            .min()
    }

    /// What targets are to trust.
    ///
    /// # Errors
    ///
    /// When nothing of it is valid any more.
    pub fn trust(&self, now: Timestamp) -> Result<TrustBundle, TrustBundleError> {
        self.all()?.without_expired(now)
    }

    fn all(&self) -> Result<TrustBundle, TrustBundleError> {
        let previous = self.previous.iter().map(|previous| &previous.certificate);
        TrustBundle::new(previous.chain(self.given.certificates()).cloned())
    }

    /// The Secret, in the operator's own namespace. Those with the CAs of ServingCertificates have a dot in their names.
    pub fn key(own_namespace: &str, source: &ObjectKey) -> ObjectKey {
        let hash = Sha256::digest(source.to_string());
        ObjectKey {
            cluster: InCluster::Own,
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(own_namespace.to_owned()),
            name: format!("ca-source-{}", hexadecimal(&hash[..10])),
        }
    }

    /// Of which source a Secret notes something; `None` for any other Secret.
    pub fn source(secret: &Value) -> Option<ObjectKey> {
        let source = object::annotation(secret, names::CA_SOURCE)?;
        let mut parts = source.split('/').map(str::to_owned);
        let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let api_version = match &*kind {
            "Certificate" => CERT_MANAGER_VERSION,
            _ => "v1",
        };
        Some(ObjectKey {
            cluster: InCluster::Own,
            api_version: api_version.to_owned(),
            kind,
            namespace: Some(namespace),
            name,
        })
    }

    /// What a Secret notes of which source; `None` for any other Secret, and for one that is damaged.
    pub fn read(secret: &Value) -> Option<(ObjectKey, Self)> {
        let source = Self::source(secret)?;
        let given = object::data(secret, CA_CERTIFICATES)?;
        let (given, _) = TrustBundle::from_foreign_pem(&given).ok()?;
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
        Some((source, Self { given, previous }))
    }

    /// The Secret `key`, at the resourceVersion that it replaces.
    ///
    /// # Errors
    ///
    /// When the certificates cannot be written as JSON.
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
            "data": { CA_CERTIFICATES: encoded(self.given.to_pem()), PREVIOUS_CAS: encoded(previous) },
        });
        if let Some(version) = replacing {
            secret["metadata"]["resourceVersion"] = version.into();
        }
        Ok(secret)
    }
}

// === impl PreviousCa ===

impl PreviousCa {
    /// Until when it is trusted.
    fn until(&self) -> Timestamp {
        let end = self
            .replaced
            .checked_add(LONGEST_OVERLAP)
            .unwrap_or(Timestamp::MAX);
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
            cluster: InCluster::Own,
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some("system".to_owned()),
            name: "hook-cert".to_owned(),
        }
    }

    #[test]
    fn what_a_source_gave_before_is_trusted_until_it_is_settled_or_a_day_is_over() {
        let first = SourceRecord::new(bundle(&[1]));
        assert_eq!(first.trust(NOW).unwrap(), bundle(&[1]));
        assert_eq!(first.replaced(), None);
        assert_eq!(first.after(&bundle(&[1]), NOW), first, "nothing to write");
        let swapped = first.after(&bundle(&[2]), NOW);
        assert_eq!(swapped.trust(NOW).unwrap(), bundle(&[1, 2]));
        assert_eq!((swapped.given(), swapped.replaced()), (&bundle(&[2]), Some(NOW)));
        let later = |hours| NOW + SignedDuration::from_hours(hours);
        assert_eq!(swapped.after(&bundle(&[2]), later(23)), swapped);
        assert_eq!(swapped.until(NOW), Some(later(24)));
        assert_eq!(
            swapped.after(&bundle(&[2]), later(24)),
            SourceRecord::new(bundle(&[2]))
        );
        let back = swapped.after(&bundle(&[1]), later(1));
        assert_eq!(back.trust(NOW).unwrap(), bundle(&[1, 2]));
        assert_eq!(
            back.after(&bundle(&[1]), later(24)),
            back,
            "2 was given for an hour longer"
        );
        assert_eq!(swapped.settled(), SourceRecord::new(bundle(&[2])));
        let third = swapped.after(&bundle(&[3]), later(1));
        assert_eq!(third.trust(NOW).unwrap(), bundle(&[1, 2, 3]));
        assert_eq!(
            third.after(&bundle(&[3]), later(24)).trust(NOW).unwrap(),
            bundle(&[2, 3])
        );
    }

    #[test]
    fn what_has_expired_is_trusted_no_more() {
        let swapped = SourceRecord::new(bundle(&[1])).after(&bundle(&[2]), NOW);
        let end = certificate(1).not_after();
        let over = end + DAY * 365 * 100;
        assert!(swapped.trust(over).is_err());
        assert_eq!(SourceRecord::new(bundle(&[1])).until(NOW), Some(end));
        assert_eq!(SourceRecord::new(bundle(&[1])).until(end), None);
    }

    #[test]
    fn a_damaged_secret_tells_nothing() {
        let key = SourceRecord::key("windlass-system", &source());
        let record = SourceRecord::new(bundle(&[1])).after(&bundle(&[2]), NOW);
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
        fn whatever_is_given_is_trusted_and_read_back_as_it_was_written(
            given in prop::collection::vec((prop::collection::vec(1..6_u32, 1..4), 0..40_i64), 1..20),
        ) {
            let key = SourceRecord::key("windlass-system", &source());
            let mut now = NOW;
            let mut record = SourceRecord::new(bundle(&given[0].0));
            for (generations, hours) in given {
                now += SignedDuration::from_hours(hours);
                let before = record.clone();
                record = record.after(&bundle(&generations), now);
                let trust = record.trust(now).unwrap();
                prop_assert!(generations.iter().all(|given| trust.certificates().contains(&certificate(*given))));
                let until_now = before.given().certificates();
                prop_assert!(until_now.iter().all(|given| trust.certificates().contains(given)), "a step at a time");
                prop_assert!(record.previous.len() <= MOST_PREVIOUS);
                let secret = record.write(&key, &source(), Some("7")).unwrap();
                prop_assert_eq!(SourceRecord::read(&secret), Some((source(), record.clone())));
                prop_assert_eq!(record.after(&bundle(&generations), now), record.clone());
            }
        }
    }
}
