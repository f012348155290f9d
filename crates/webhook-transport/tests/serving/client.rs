//! TLS configurations of clients.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use test_authority::{TestAuthority, TestCertificate};

/// The name of the server.
pub(crate) const NAME: &str = "webhook.default.svc";

/// A client that trusts `authorities` and offers `protocols`.
pub(crate) fn client(
    authorities: &[&TestAuthority],
    identity: Option<&TestCertificate>,
    protocols: &[&str],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(certificate(&authority.pem())).unwrap();
    }
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut client = match identity {
        None => client.with_no_client_auth(),
        Some(issued) => {
            let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
            client
                .with_client_auth_cert(vec![certificate(&issued.certificate)], key)
                .unwrap()
        }
    };
    client.alpn_protocols = protocols
        .iter()
        .map(|protocol| protocol.as_bytes().to_vec())
        .collect();
    Arc::new(client)
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}
