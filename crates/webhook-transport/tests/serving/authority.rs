//! A CA, and what it issues.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};

/// The name of the server.
pub(crate) const NAME: &str = "webhook.default.svc";

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        Self {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(parameters, key),
        }
    }

    pub(crate) fn server(&self) -> Issued {
        self.issue(NAME, ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub(crate) fn client(&self) -> Issued {
        self.issue("client", ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.extended_key_usages = vec![usage];
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
            key_der: key.serialize_der(),
        }
    }
}

// === impl Issued ===

impl Issued {
    /// Writes both as the node does: into a folder of their own, to which a symbolic link is swapped.
    pub(crate) fn mount(&self, folder: &Path, version: u32) {
        let (data, next) = (folder.join("..data"), folder.join("..data_tmp"));
        let own = folder.join(format!("..{version}"));
        fs::create_dir(&own).unwrap();
        fs::write(own.join("tls.crt"), &self.certificate).unwrap();
        fs::write(own.join("tls.key"), &self.key).unwrap();
        symlink(&own, &next).unwrap();
        fs::rename(&next, &data).unwrap();
        for file in ["tls.crt", "tls.key"] {
            let link = folder.join(file);
            if fs::symlink_metadata(&link).is_err() {
                symlink(Path::new("..data").join(file), link).unwrap();
            }
        }
    }
}

/// How a client connects that trusts `authorities` and speaks `protocols`.
pub(crate) fn client(
    authorities: &[&Authority],
    identity: Option<&Issued>,
    protocols: &[&str],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.certificate.clone()).unwrap();
    }
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut client = match identity {
        None => client.with_no_client_auth(),
        Some(issued) => {
            let key = PrivateKeyDer::try_from(issued.key_der.clone()).unwrap();
            client
                .with_client_auth_cert(vec![issued.der.clone()], key)
                .unwrap()
        }
    };
    client.alpn_protocols = protocols
        .iter()
        .map(|protocol| protocol.as_bytes().to_vec())
        .collect();
    Arc::new(client)
}
