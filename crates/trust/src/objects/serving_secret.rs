//! The Secret that servers mount.

use serde_json::{Value, json};
use windlass_object::{
    InCluster, ObjectKey, names, object,
    secret_keys::{CA_CERTIFICATES, OLM_CA_CERTIFICATE, TLS_CERTIFICATE, TLS_PRIVATE_KEY, TLS_TYPE},
};

use super::{
    certificate_store::CertificateStore,
    secret::{CertificateRequirements, encoded, label_value},
};
use crate::{
    pki::{Certificate, Credentials, pem},
    rotation::PublishedSecret,
    trust_bundle::TrustBundle,
};

/// The contents of the Secret. Not `Debug`, because it holds a key.
pub struct ServingSecret {
    /// `metadata.resourceVersion`, which must be unchanged on a write.
    pub version: String,
    /// What a rotation observes.
    pub content: PublishedSecret,
    /// The leaf and its key; `None` if they are damaged.
    pub credentials: Option<Credentials>,
    /// Whether targets may request its `ca.crt` by the name of the Secret.
    pub allows_direct_injection: bool,
    live: Value,
}

/// The desired contents of the Secret.
pub struct SecretContents<'a> {
    /// The leaf, its intermediates and its key.
    pub credentials: &'a Credentials,
    /// The trust bundle for `ca.crt`.
    pub trust: &'a TrustBundle,
    /// The CA that signed the leaf.
    pub authority: Option<&'a Certificate>,
    /// Namespace of the Windlass installation, which the Secret records.
    pub operator_namespace: &'a str,
}

impl ServingSecret {
    /// Returns why the Secret must not be written, or `None` if it may be.
    pub fn objection(secret: &Value, requirements: &CertificateRequirements<'_>) -> Option<String> {
        let name = requirements.secret_name;
        if !was_created_for(secret, requirements) {
            return Some(format!(
                "Secret {name} exists and was not created for this ServingCertificate: choose another spec.secretName or, if nothing uses the Secret, delete it or label it {}={} to have it replaced",
                names::SERVING_CERTIFICATE,
                label_value(&requirements.certificate.name)
            ));
        }
        if secret.get("immutable") == Some(&Value::Bool(true)) {
            return Some(format!(
                "Secret {name} is immutable: delete it to have it recreated"
            ));
        }
        match object::text(secret, "/type") {
            Some(TLS_TYPE) => None,
            other => Some(format!(
                "Secret {name} has type {}, expected {TLS_TYPE}: delete it to have it recreated",
                other.unwrap_or("Opaque")
            )),
        }
    }

    /// Reads the Secret. Damaged parts count as missing.
    pub fn read(
        secret: Value,
        requirements: &CertificateRequirements<'_>,
        certificates: &mut CertificateStore,
    ) -> Self {
        let bytes = |key| object::data(&secret, key).unwrap_or_default();
        let bundle = TrustBundle::from_pem(&bytes(CA_CERTIFICATES)).ok();
        let bundle = bundle.map(|bundle| {
            let roots = bundle.certificates().iter();
            roots.map(|root| certificates.insert(root)).collect()
        });
        let authority = pem::read(&bytes(OLM_CA_CERTIFICATE)).certificates;
        let credentials = Credentials::from_pem(&bytes(TLS_CERTIFICATE), &bytes(TLS_PRIVATE_KEY)).ok();
        let mut content = PublishedSecret {
            bundle,
            authority: authority
                .first()
                .map(|authority| certificates.insert(authority).fingerprint),
            ..PublishedSecret::default()
        };
        if let Some(credentials) = &credentials {
            let cross = credentials.intermediates().first();
            content.cross = cross.map(|cross| certificates.insert_presented(cross));
            content.leaf = Some(certificates.insert_presented(credentials.leaf()));
            content.matches_spec = credentials.leaf().is_for(requirements.names)
                && credentials.key().algorithm() == requirements.algorithm;
        }
        Self {
            version: object::text(&secret, "/metadata/resourceVersion")
                .unwrap_or_default()
                .to_owned(),
            content,
            credentials,
            allows_direct_injection: object::annotation(&secret, names::ALLOW_DIRECT_INJECTION)
                == Some("true"),
            live: secret,
        }
    }

    /// Returns the Secret with `contents`; additions by others are kept.
    pub fn write(
        live: Option<&Self>,
        requirements: &CertificateRequirements<'_>,
        contents: &SecretContents<'_>,
    ) -> Value {
        let key = Self::key(requirements);
        let mut secret = live.map_or_else(
            || {
                json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": { "name": key.name, "namespace": key.namespace },
                    "type": TLS_TYPE,
                })
            },
            |live| live.live.clone(),
        );
        secret["metadata"]["labels"][names::SERVING_CERTIFICATE] =
            label_value(&requirements.certificate.name).into();
        secret["metadata"]["annotations"][names::OPERATOR_NAMESPACE] = contents.operator_namespace.into();
        let owners = object::items(&secret, "/metadata/ownerReferences");
        secret["metadata"]["ownerReferences"] = owners_with_certificate(owners, requirements).into();
        let data = &mut secret["data"];
        data[TLS_CERTIFICATE] = encoded(contents.credentials.chain_pem());
        data[TLS_PRIVATE_KEY] = encoded(contents.credentials.key().to_pem());
        data[CA_CERTIFICATES] = encoded(contents.trust.to_pem());
        match contents.authority {
            Some(authority) => data[OLM_CA_CERTIFICATE] = encoded(authority.to_pem()),
            None => {
                if let Some(data) = data.as_object_mut() {
                    data.remove(OLM_CA_CERTIFICATE);
                }
            }
        }
        secret
    }

    /// Returns the key of the Secret.
    pub fn key(requirements: &CertificateRequirements<'_>) -> ObjectKey {
        ObjectKey {
            cluster: InCluster::Local,
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: requirements.certificate.namespace.clone(),
            name: requirements.secret_name.to_owned(),
        }
    }
}

fn owners_with_certificate(owners: &[Value], requirements: &CertificateRequirements<'_>) -> Vec<Value> {
    let mut owners = owners.to_vec();
    owners.retain(|owner| object::text(owner, "/kind") != Some(requirements.certificate.kind.as_str()));
    let mut owner = json!({
        "apiVersion": names::API_VERSION,
        "kind": requirements.certificate.kind,
        "name": requirements.certificate.name,
        "uid": requirements.uid,
    });
    // The API server rejects a second controller, and garbage collection works without one.
    if owners.iter().all(|owner| owner["controller"] != true) {
        owner["controller"] = true.into();
    }
    owners.push(owner);
    owners
}

/// Checks the label, or the owner if the label was removed.
fn was_created_for(secret: &Value, requirements: &CertificateRequirements<'_>) -> bool {
    let owned = object::items(secret, "/metadata/ownerReferences")
        .iter()
        .any(|owner| object::text(owner, "/uid") == Some(requirements.uid));
    owned
        || object::label(secret, names::SERVING_CERTIFICATE)
            == Some(&label_value(&requirements.certificate.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{KeyAlgorithm, sample};

    #[test]
    fn a_secret_with_a_controller_gets_no_second_one() {
        let certificate = ObjectKey {
            cluster: InCluster::Local,
            api_version: names::API_VERSION.to_owned(),
            kind: "ServingCertificate".to_owned(),
            namespace: Some("system".to_owned()),
            name: "hook".to_owned(),
        };
        let requirements = CertificateRequirements {
            certificate: &certificate,
            uid: "1",
            secret_name: "hook-cert",
            names: &sample::names(),
            algorithm: KeyAlgorithm::Ecdsa(256),
        };
        let second = json!({
            "apiVersion": names::API_VERSION, "kind": "ServingCertificate", "name": "hook", "uid": "1",
        });
        let mut first = second.clone();
        first["controller"] = true.into();
        let other = |controls: bool| json!({"kind": "ConfigMap", "uid": "2", "controller": controls});
        for (before, after) in [
            (vec![], vec![first.clone()]),
            (vec![first.clone()], vec![first.clone()]),
            (vec![other(false)], vec![other(false), first.clone()]),
            (vec![other(true)], vec![other(true), second.clone()]),
            (vec![first, other(true)], vec![other(true), second]),
        ] {
            assert_eq!(owners_with_certificate(&before, &requirements), after);
        }
    }
}
