//! Both Secrets of a ServingCertificate as last read. Repairs use this cache instead of the API server, since
//! a client that overwrites all targets causes many repairs at a time.

use std::collections::HashMap;

use parking_lot::Mutex;
use windlass_cluster::Index;
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    objects::{CaSecret, CertificateStore, ServingSecret},
    rotation::{CaState, PublishedSecret, TrustSet, Versioned},
};

/// Contents of both Secrets, without keys.
#[derive(Clone)]
pub(super) struct Secrets {
    pub(super) authorities: Option<Versioned<CaState>>,
    pub(super) serving: Option<Versioned<PublishedSecret>>,
    /// Whether targets may request `ca.crt` of the serving Secret by its name.
    pub(super) allow_direct_injection: bool,
    /// Certificates of the CAs.
    pub(super) certificates: CertificateStore,
}

/// Cache of the Secrets of each ServingCertificate.
#[derive(Default)]
pub(super) struct KnownSecrets(Mutex<HashMap<ObjectKey, Secrets>>);

impl Secrets {
    /// Keeps the parts that a repair needs.
    pub(super) fn from_read(
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
            certificates: certificates.subset(&authorities),
        }
    }

    /// Reports whether the watch has both Secrets at the same versions.
    fn match_watch(&self, index: &Index, authority: &ObjectKey, serving: &ObjectKey) -> bool {
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

impl KnownSecrets {
    pub(super) fn insert(&self, certificate: &ObjectKey, secrets: Secrets) {
        self.0.lock().insert(certificate.clone(), secrets);
    }

    /// Returns the cached Secrets, if the watch has not seen other versions.
    pub(super) fn find(
        &self,
        certificate: &ObjectKey,
        index: &Index,
        authority: &ObjectKey,
        serving: &ObjectKey,
    ) -> Option<Secrets> {
        let known = self.0.lock().get(certificate).cloned()?;
        known.match_watch(index, authority, serving).then_some(known)
    }

    /// Invalidates the cached Secrets.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}
