//! What a source gives: the `ca.crt` of a Secret or ConfigMap.

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

/// Why a source gives nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ReadGivenError {
    /// It is not there.
    #[error("waiting for {0}")]
    Missing(ObjectKey),
    /// It is the Secret of another Certificate.
    #[error("waiting for {0} with the annotation {CERT_MANAGER_CERTIFICATE_NAME}: {1:?}")]
    OfAnother(ObjectKey, String),
    /// It has no CA certificates.
    #[error("{0} has no {CA_CERTIFICATES}")]
    NoCertificates(ObjectKey),
    /// They could not be published.
    #[error("{0}: {CA_CERTIFICATES}: {1}")]
    Unusable(ObjectKey, TrustBundleError),
}

/// The CA certificates of the object `key`: a Secret or a ConfigMap.
///
/// # Errors
///
/// When there are none that could be given.
pub(super) fn read_given(
    source: Option<&Value>,
    key: &ObjectKey,
    now: Timestamp,
) -> Result<TrustBundle, ReadGivenError> {
    let source = source.ok_or_else(|| ReadGivenError::Missing(key.clone()))?;
    let pem = if Kind::from_key(key) == kinds::SECRET {
        object::data(source, CA_CERTIFICATES)
    } else {
        let text = source
            .get("data")
            .and_then(|data| data.get(CA_CERTIFICATES)?.as_str());
        text.map(|text| text.as_bytes().to_vec())
    };
    let pem = pem.ok_or_else(|| ReadGivenError::NoCertificates(key.clone()))?;
    let given = TrustBundle::from_foreign_pem(&pem).and_then(|(given, _)| given.without_expired(now));
    given.map_err(|error| ReadGivenError::Unusable(key.clone(), error))
}

/// The CA certificates in the Secret of a Certificate of cert-manager, once cert-manager has said in it that it is.
///
/// # Errors
///
/// As [`read_given`].
pub(super) fn read_given_to_certificate(
    certificate: &ObjectKey,
    secret: Option<(&ObjectKey, Option<&Value>)>,
    now: Timestamp,
) -> Result<TrustBundle, ReadGivenError> {
    let (key, secret) = secret.ok_or_else(|| ReadGivenError::Missing(certificate.clone()))?;
    let owner = secret.and_then(|secret| object::annotation(secret, CERT_MANAGER_CERTIFICATE_NAME));
    if secret.is_some() && owner != Some(&certificate.name) {
        return Err(ReadGivenError::OfAnother(key.clone(), certificate.name.clone()));
    }
    read_given(secret, key, now)
}

/// Whether a Secret is that of a ServingCertificate, whose rotation gives its targets what they need: by its owner, or by
/// its label where there is a ServingCertificate with that Secret. A copy has the label, too.
pub(super) fn is_of_serving_certificate(secret: &Value, key: &ObjectKey, index: &Index) -> bool {
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
    fn what_is_no_ca_is_not_given_and_said() {
        let key = kinds::SECRET.object(Some("n"), "ca");
        let problem = |secret: Option<Value>| {
            let read = read_given(secret.as_ref(), &key, Timestamp::UNIX_EPOCH);
            read.unwrap_err().to_string()
        };
        let with = |data: Value| problem(Some(json!({"data": data})));
        let said = [
            problem(None),
            with(json!(null)),
            with(json!({"tls.crt": "YQ=="})),
            with(json!({"ca.crt": ""})),
            with(json!({"ca.crt": "%"})),
            with(json!({"ca.crt": "YQ=="})),
        ];
        for problem in &said {
            assert!(problem.contains("n/ca"), "{problem}");
        }
        assert_eq!(said[1], said[2]);
        assert_ne!(said[0], said[1], "there is one");
        assert_ne!(said[2], said[3], "there is something");
    }

    #[test]
    fn a_copy_of_a_serving_secret_is_none_of_a_serving_certificate() {
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
                is_of_serving_certificate(&secret, &key, &index),
                expected,
                "{secret}"
            );
        }
    }
}
