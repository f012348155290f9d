//! What both Secrets of a ServingCertificate said when they were read last, for repairs: those are many at once where
//! somebody overwrites all targets, and keep nobody waiting for the API server.

use std::collections::HashMap;

use parking_lot::Mutex;
use windlass_cluster::Index;
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    objects::{CaSecret, CertificateStore, ServingSecret},
    rotation::{CaState, PublishedSecret, TrustSet, Versioned},
};

/// What both Secrets said, without any key.
#[derive(Clone)]
pub(super) struct Secrets {
    /// The CA Secret.
    pub(super) authorities: Option<Versioned<CaState>>,
    /// The serving Secret.
    pub(super) serving: Option<Versioned<PublishedSecret>>,
    /// Whether targets may ask for `ca.crt` of the serving Secret by its name.
    pub(super) allow_direct_injection: bool,
    /// The certificates of the CAs.
    pub(super) certificates: CertificateStore,
}

/// The Secrets of each ServingCertificate, as they were read last.
#[derive(Default)]
pub(super) struct KnownSecrets(Mutex<HashMap<ObjectKey, Secrets>>);

// === impl Secrets ===

impl Secrets {
    /// What a repair needs of what was read.
    pub(super) fn of(
        authority: Option<&CaSecret>,
        serving: Option<&ServingSecret>,
        certificates: &CertificateStore,
    ) -> Self {
        let authorities = authority
            .iter()
            .flat_map(|secret| secret.authorities.certificates());
        let authorities: TrustSet = authorities.copied().collect();
        Self {
            authorities: authority.map(|secret| Versioned {
                version: secret.version.clone(),
                content: secret.authorities.clone(),
            }),
            serving: serving.map(|secret| Versioned {
                version: secret.version.clone(),
                content: secret.content.clone(),
            }),
            allow_direct_injection: serving.is_some_and(|secret| secret.allows_direct_injection),
            certificates: certificates.only(&authorities),
        }
    }

    /// Whether the watch has seen both Secrets at the same versions.
    fn are_as_seen(&self, index: &Index, authority: &ObjectKey, serving: &ObjectKey) -> bool {
        let is_seen = |key: &ObjectKey, known: Option<&str>| {
            let seen = index.find(key);
            let version = seen
                .as_ref()
                .map(|secret| object::text(secret, "/metadata/resourceVersion"));
            version == known.map(Some)
        };
        is_seen(
            authority,
            self.authorities.as_ref().map(|secret| &*secret.version),
        ) && is_seen(serving, self.serving.as_ref().map(|secret| &*secret.version))
    }
}

// === impl KnownSecrets ===

impl KnownSecrets {
    /// Keeps what was read.
    pub(super) fn keep(&self, certificate: &ObjectKey, secrets: Secrets) {
        self.0.lock().insert(certificate.clone(), secrets);
    }

    /// What was read, if the watch has seen nothing else since.
    pub(super) fn find(
        &self,
        certificate: &ObjectKey,
        index: &Index,
        authority: &ObjectKey,
        serving: &ObjectKey,
    ) -> Option<Secrets> {
        let known = self.0.lock().get(certificate).cloned()?;
        known.are_as_seen(index, authority, serving).then_some(known)
    }

    /// What was read is not so any more, or is about to be replaced.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}
