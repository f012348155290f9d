//! A test CA and its certificates. Every failure fails the test.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::{fs, os::unix::fs::symlink, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair,
};

/// A CA with its own key.
pub struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct TestCertificate {
    /// The certificate, in PEM.
    pub certificate: String,
    /// The private key, in PEM.
    pub key: String,
}

impl TestAuthority {
    /// Creates a CA with this common name.
    pub fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    /// The CA certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a server certificate for `names`, which may be IP addresses.
    pub fn server(&self, names: &[&str]) -> TestCertificate {
        self.issue(names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a client certificate.
    pub fn client(&self) -> TestCertificate {
        self.issue(&["client"], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, names: &[&str], usage: ExtendedKeyUsagePurpose) -> TestCertificate {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.extended_key_usages = vec![usage];
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        TestCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl TestCertificate {
    /// Writes `tls.crt` and then `tls.key`. Readers must not use the pair while it does not match.
    pub fn write(&self, folder: &Path) {
        fs::write(folder.join("tls.crt"), &self.certificate).unwrap();
        fs::write(folder.join("tls.key"), &self.key).unwrap();
    }

    /// Writes both files like the kubelet: into a new folder for `version`, to which it then swaps a symbolic
    /// link.
    pub fn mount(&self, folder: &Path, version: u32) {
        let (data, next) = (folder.join("..data"), folder.join("..data_tmp"));
        let own = folder.join(format!("..{version}"));
        fs::create_dir(&own).unwrap();
        self.write(&own);
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
