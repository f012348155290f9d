//! CA certificates from a source: the `ca.crt` of a Secret or ConfigMap.

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;
use windlass_cluster::{Index, Kind, kinds};
use windlass_object::{
    ObjectKey, ca_injectors::CERT_MANAGER_CERTIFICATE_NAME, names, object, secret_keys::CA_CERTIFICATES,
};
use windlass_trust::{
    objects::label_value,
    trust_bundle::{TrustBundle, TrustBundleError},
};

/// Why a source has no usable CA certificates.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ReadCaBundleError {
    /// The object does not exist.
    #[error("waiting for {0}")]
    Missing(ObjectKey),
    /// The Secret does not belong to the Certificate.
    #[error("waiting for {0} with the annotation {CERT_MANAGER_CERTIFICATE_NAME}: {1:?}")]
    WrongOwner(ObjectKey, String),
    /// The object has no CA certificates.
    #[error("{0} has no {CA_CERTIFICATES}")]
    NoCertificates(ObjectKey),
    /// The CA certificates are not usable.
    #[error("{0}: {CA_CERTIFICATES}: {1}")]
    Unusable(ObjectKey, TrustBundleError),
}

/// Reads the CA certificates of the Secret or ConfigMap `key`.
///
/// # Errors
///
/// If there are none, or if they are not usable.
pub(super) fn read_ca_bundle(
    source: Option<&Value>,
    key: &ObjectKey,
    now: Timestamp,
) -> Result<TrustBundle, ReadCaBundleError> {
    let source = source.ok_or_else(|| ReadCaBundleError::Missing(key.clone()))?;
    let pem = if Kind::from_key(key) == kinds::SECRET {
        object::data(source, CA_CERTIFICATES)
    } else {
        let text = source
            .get("data")
            .and_then(|data| data.get(CA_CERTIFICATES)?.as_str());
        text.map(|text| text.as_bytes().to_vec())
    };
    let pem = pem.ok_or_else(|| ReadCaBundleError::NoCertificates(key.clone()))?;
    let bundle = TrustBundle::from_foreign_pem(&pem).and_then(|(bundle, _)| bundle.without_expired(now));
    bundle.map_err(|error| ReadCaBundleError::Unusable(key.clone(), error))
}

/// Reads the CA certificates in the Secret of a cert-manager Certificate. cert-manager must have annotated
/// the Secret with the name of the Certificate.
///
/// # Errors
///
/// As [`read_ca_bundle`].
pub(super) fn read_certificate_ca_bundle(
    certificate: &ObjectKey,
    secret: Option<(&ObjectKey, Option<&Value>)>,
    now: Timestamp,
) -> Result<TrustBundle, ReadCaBundleError> {
    let (key, secret) = secret.ok_or_else(|| ReadCaBundleError::Missing(certificate.clone()))?;
    let owner = secret.and_then(|secret| object::annotation(secret, CERT_MANAGER_CERTIFICATE_NAME));
    if secret.is_some() && owner != Some(&certificate.name) {
        return Err(ReadCaBundleError::WrongOwner(
            key.clone(),
            certificate.name.clone(),
        ));
    }
    read_ca_bundle(secret, key, now)
}

/// Reports whether a Secret belongs to a ServingCertificate, whose rotation updates its targets. The Secret
/// belongs to it by its owner reference, or by its label if the ServingCertificate names the Secret, since a
/// copy has the label too.
pub(super) fn belongs_to_serving_certificate(secret: &Value, key: &ObjectKey, index: &Index) -> bool {
    let is_certificate = |owner: &Value| {
        object::text(owner, "/apiVersion") == Some(names::API_VERSION)
            && object::text(owner, "/kind") == Some(&*kinds::SERVING_CERTIFICATE.kind)
    };
    if object::items(secret, "/metadata/ownerReferences")
        .iter()
        .any(is_certificate)
    {
        return true;
    }
    let Some(label) = object::label(secret, names::SERVING_CERTIFICATE) else {
        return false;
    };
    index
        .objects(&kinds::SERVING_CERTIFICATE)
        .iter()
        .any(|certificate| {
            let text = |pointer| object::text(certificate, pointer);
            text("/metadata/namespace") == key.namespace.as_deref()
                && text("/spec/secretName") == Some(&key.name)
                && text("/metadata/name").is_some_and(|name| label_value(name) == label)
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::watch::Watch;

    use super::*;

    #[test]
    fn unusable_sources_are_rejected_with_a_message() {
        let key = kinds::SECRET.object(Some("n"), "ca");
        let problem = |secret: Option<Value>| {
            let read = read_ca_bundle(secret.as_ref(), &key, Timestamp::UNIX_EPOCH);
            read.unwrap_err().to_string()
        };
        let with = |data: Value| problem(Some(json!({"data": data})));
        let problems = [
            problem(None),
            with(json!(null)),
            with(json!({"tls.crt": "YQ=="})),
            with(json!({"ca.crt": ""})),
            with(json!({"ca.crt": "%"})),
            with(json!({"ca.crt": "YQ=="})),
        ];
        for problem in &problems {
            assert!(problem.contains("n/ca"), "{problem}");
        }
        assert_eq!(problems[1], problems[2]);
        assert_ne!(
            problems[0], problems[1],
            "missing and empty objects get different messages"
        );
        assert_ne!(
            problems[2], problems[3],
            "missing and unusable certificates get different messages"
        );
    }

    #[test]
    fn a_copy_of_a_serving_secret_does_not_belong_to_the_certificate() {
        let index = Index::new();
        index.apply(
            &Watch::all(kinds::SERVING_CERTIFICATE),
            json!({
                "apiVersion": names::API_VERSION, "kind": "ServingCertificate",
                "metadata": {"namespace": "n", "name": "hook"}, "spec": {"secretName": "hook-cert"},
            }),
        );
        let owner = json!([{"apiVersion": names::API_VERSION, "kind": "ServingCertificate", "name": "hook"}]);
        for (namespace, name, owners, label, expected) in [
            ("n", "hook-cert", &owner, Some("hook"), true),
            ("n", "hook-cert", &owner, None, true),
            ("n", "hook-cert", &json!([]), Some("hook"), true),
            ("n", "hook-cert", &json!([]), Some("other"), false),
            ("n", "hook-cert", &json!([]), None, false),
            ("n", "copy", &json!([]), Some("hook"), false),
            ("m", "hook-cert", &json!([]), Some("hook"), false),
        ] {
            let labels = label.map(|label| json!({ names::SERVING_CERTIFICATE: label }));
            let secret = json!({
                "metadata": {"namespace": namespace, "name": name, "ownerReferences": owners, "labels": labels},
            });
            let key = kinds::SECRET.object(Some(namespace), name);
            assert_eq!(
                belongs_to_serving_certificate(&secret, &key, &index),
                expected,
                "{secret}"
            );
        }
    }
}
