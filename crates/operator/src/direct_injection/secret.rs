//! The Secret whose `ca.crt` is asked for.

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{Index, kinds};
use windlass_object::{ObjectKey, names, object, secret_keys::CA_CERTIFICATES};
use windlass_trust::{objects::label_value, trust_bundle::TrustBundle};

/// The trust bundle of a Secret that lets targets have it.
///
/// # Errors
///
/// When it does not, or has none that could be given.
pub(super) fn read_trust(secret: &Value, key: &ObjectKey, now: Timestamp) -> Result<TrustBundle, String> {
    if object::annotation(secret, names::ALLOW_DIRECT_INJECTION) != Some("true") {
        return Err(format!(
            "{key} does not have the annotation {}: \"true\"",
            names::ALLOW_DIRECT_INJECTION
        ));
    }
    let pem =
        object::data(secret, CA_CERTIFICATES).ok_or_else(|| format!("{key} has no {CA_CERTIFICATES}"))?;
    let (bundle, _) =
        TrustBundle::from_foreign_pem(&pem).map_err(|error| format!("{key}: {CA_CERTIFICATES}: {error}"))?;
    bundle
        .without_expired(now)
        .map_err(|error| format!("{key}: {CA_CERTIFICATES}: {error}"))
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
