//! Checks whether clients with a trust bundle accept a server; used by tests.

use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use thiserror::Error;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use super::bundle::TrustBundle;
use crate::pki::Certificate;

/// Why a client rejects a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Untrusted {
    /// The server presents no certificate.
    #[error("no certificate was presented")]
    NoCertificate,
    /// The server name is invalid.
    #[error("{0:?} is not a server name")]
    Host(String),
    /// The chain leads to no certificate of the bundle, or is not valid for this name or time.
    #[error("{leaf} is not accepted: {error}")]
    Refused {
        /// The server's own certificate.
        leaf: String,
        error: webpki::Error,
    },
}

impl TrustBundle {
    /// Verifies a server that is called by `host` and presents `chain`, leaf first, as a TLS client does.
    ///
    /// # Errors
    ///
    /// If a client that trusts this bundle would end the handshake.
    pub(super) fn verify(&self, chain: &[Certificate], host: &str, now: Timestamp) -> Result<(), Untrusted> {
        let [leaf, intermediates @ ..] = chain else {
            return Err(Untrusted::NoCertificate);
        };
        let name = ServerName::try_from(host).map_err(|_| Untrusted::Host(host.to_owned()))?;
        self.verify_chain(leaf, intermediates, &name, now)
            .map_err(|error| Untrusted::Refused {
                leaf: leaf.to_string(),
                error,
            })
    }

    fn verify_chain(
        &self,
        leaf: &Certificate,
        intermediates: &[Certificate],
        name: &ServerName<'_>,
        now: Timestamp,
    ) -> Result<(), webpki::Error> {
        let anchors: Vec<TrustAnchor<'_>> = self
            .certificates()
            .iter()
            .map(|certificate| anchor_from_trusted_cert(certificate.der()))
            .collect::<Result<_, _>>()?;
        let intermediates: Vec<CertificateDer<'_>> = intermediates
            .iter()
            .map(|certificate| certificate.der().clone())
            .collect();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(
            u64::try_from(now.as_second()).unwrap_or_default(),
        ));
        let leaf = EndEntityCert::try_from(leaf.der())?;
        leaf.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            &anchors,
            &intermediates,
            now,
            KeyUsage::server_auth(),
            None,
            None,
        )?;
        leaf.verify_is_valid_for_subject_name(name)
    }
}
