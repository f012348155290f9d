//! The certificate of the server, read from its Secret at each TLS handshake.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use rustls::{
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use serde_json::Value;
use thiserror::Error;
use tracing::{info, warn};
use windlass_cluster::{Index, telemetry::chain};
use windlass_object::{
    ObjectKey, object,
    secret_keys::{TLS_CERTIFICATE, TLS_PRIVATE_KEY},
};

/// Why a Secret cannot be used.
#[derive(Debug, Error)]
enum LoadCertificateError {
    #[error("Secret has no {0}")]
    Missing(&'static str),
    #[error("{name} cannot be read")]
    Read {
        name: &'static str,
        #[source]
        source: pem::Error,
    },
    #[error("the certificate and key cannot be used")]
    Use(#[source] rustls::Error),
}

/// Resolves the certificate in a Secret.
pub(crate) struct CertificateResolver {
    index: Arc<Index>,
    secret: ObjectKey,
    last: Mutex<LastHandshake>,
}

/// The state at the last handshake.
#[derive(Default)]
struct LastHandshake {
    secret: Option<Arc<Value>>,
    /// The last valid certificate, which an invalid one does not replace.
    served: Option<Arc<CertifiedKey>>,
}

impl CertificateResolver {
    /// Uses the certificate in `secret`, as `index` has it.
    pub(crate) fn new(index: Arc<Index>, secret: ObjectKey) -> Self {
        Self {
            index,
            secret,
            last: Mutex::default(),
        }
    }

    pub(crate) fn secret(&self) -> &ObjectKey {
        &self.secret
    }

    /// Reports whether there is a certificate to serve.
    pub(crate) fn has_certificate(&self) -> bool {
        self.current().is_some()
    }

    fn current(&self) -> Option<Arc<CertifiedKey>> {
        let mut last = self.last.lock();
        let secret = self.index.find(&self.secret);
        let is_known = |secret: &Arc<Value>| {
            last.secret
                .as_ref()
                .is_some_and(|known| Arc::ptr_eq(known, secret))
        };
        let Some(secret) = secret.filter(|secret| !is_known(secret)) else {
            return last.served.clone();
        };
        match load(&secret) {
            Ok(loaded)
                if last
                    .served
                    .as_ref()
                    .is_some_and(|served| served.cert == loaded.cert) => {}
            Ok(loaded) => {
                info!(secret = %self.secret, "Serving a new certificate");
                last.served = Some(Arc::new(loaded));
            }
            Err(error) => {
                warn!(secret = %self.secret, error = chain(&error), "Cannot load the new certificate; keeping the current one");
            }
        }
        last.secret = Some(secret);
        last.served.clone()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

impl fmt::Debug for CertificateResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("secret", &self.secret)
            .finish_non_exhaustive()
    }
}

fn load(secret: &Value) -> Result<CertifiedKey, LoadCertificateError> {
    let bytes = |name| object::data(secret, name).ok_or(LoadCertificateError::Missing(name));
    let unreadable = |name| move |source| LoadCertificateError::Read { name, source };
    let chain = CertificateDer::pem_slice_iter(&bytes(TLS_CERTIFICATE)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(unreadable(TLS_CERTIFICATE))?;
    if chain.is_empty() {
        return Err(LoadCertificateError::Missing(TLS_CERTIFICATE));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes(TLS_PRIVATE_KEY)?).map_err(unreadable(TLS_PRIVATE_KEY))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(LoadCertificateError::Use)
}

#[cfg(test)]
pub(crate) mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::json;

    use super::*;
    use windlass_cluster::{kinds, watch::Watch};

    /// Returns a certificate and its key, as PEM.
    pub(crate) fn certificate_and_key() -> (String, String) {
        let issued = rcgen::generate_simple_self_signed(["windlass.windlass-system.svc".to_owned()]).unwrap();
        (
            STANDARD.encode(issued.cert.pem()),
            STANDARD.encode(issued.signing_key.serialize_pem()),
        )
    }

    #[test]
    fn the_last_valid_certificate_is_served_until_the_next() {
        let index = Arc::new(Index::new());
        let key = kinds::SECRET.object(Some("windlass-system"), "windlass-cert");
        let watch = Watch::all(kinds::SECRET);
        let certificate = CertificateResolver::new(index.clone(), key.clone());
        let put = |data: Value| {
            index.apply(
                &watch,
                json!({
                    "apiVersion": "v1", "kind": "Secret",
                    "metadata": {"namespace": "windlass-system", "name": "windlass-cert"}, "data": data,
                }),
            );
        };
        assert!(certificate.current().is_none(), "there is no Secret yet");
        let (first, second) = (certificate_and_key(), certificate_and_key());
        put(json!({TLS_CERTIFICATE: first.0, TLS_PRIVATE_KEY: first.1}));
        let served = certificate.current().unwrap();
        for damaged in [
            json!({}),
            json!({TLS_CERTIFICATE: first.0}),
            json!({TLS_CERTIFICATE: "", TLS_PRIVATE_KEY: first.1}),
            json!({TLS_CERTIFICATE: first.1, TLS_PRIVATE_KEY: first.0}),
            json!({TLS_CERTIFICATE: second.0, TLS_PRIVATE_KEY: first.1}),
        ] {
            put(damaged.clone());
            assert_eq!(certificate.current().unwrap().cert, served.cert, "{damaged}");
        }
        index.delete(&watch, &key);
        assert_eq!(
            certificate.current().unwrap().cert,
            served.cert,
            "the Secret is gone"
        );
        put(json!({TLS_CERTIFICATE: second.0, TLS_PRIVATE_KEY: second.1}));
        assert_ne!(certificate.current().unwrap().cert, served.cert);
        assert!(!format!("{certificate:?}").contains(&second.1));
    }
}
