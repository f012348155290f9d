//! Certificates as OLM issues them: a CA whose key is discarded, and a leaf.

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::{deployment::hash, objects::owner_reference};
use crate::request::text;

/// A CA and the leaf that it signs for a Service.
pub(super) struct OlmPair {
    pub(super) authority: String,
    certificate: String,
    key: String,
}

impl OlmPair {
    /// `certs.GenerateCA` and `certs.CreateSignedServingPair`.
    pub(super) fn new(service: &str, namespace: &str) -> anyhow::Result<Self> {
        let serial: u64 = rand::random();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name = named(&format!("olm-selfsigned-{serial:x}"));
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let base = format!("{service}.{namespace}");
        let names = vec![
            base.clone(),
            format!("{base}.svc"),
            format!("{base}.svc.cluster.local"),
        ];
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name = named(&base);
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &authority)?.pem();
        Ok(Self {
            authority: authority.pem(),
            certificate,
            key: key.serialize_pem(),
        })
    }

    /// The Secret that servers mount.
    pub(super) fn secret(&self, csv: &Value, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {
                "name": name, "namespace": text(csv, "/metadata/namespace"),
                "labels": {"olm.managed": "true"}, "annotations": {"olmcahash": hash(&json!(self.authority))},
                "ownerReferences": [owner_reference(csv)],
            },
            "data": {
                "tls.crt": STANDARD.encode(&self.certificate), "tls.key": STANDARD.encode(&self.key),
                "olmCAKey": STANDARD.encode(&self.authority),
            },
        })
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "Red Hat, Inc.");
    subject.push(DnType::CommonName, name);
    subject
}

/// The CA of a Secret to reuse; `None` if it is not valid.
pub(super) fn authority_of(secret: &Value) -> Option<String> {
    let data = |key: &str| STANDARD.decode(secret["data"][key].as_str()?).ok();
    data("tls.crt").filter(|certificate| !certificate.is_empty())?;
    String::from_utf8(data("olmCAKey")?).ok()
}
