//! The two Secrets of a ServingCertificate: their names, their labels, their data.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, names, object, text::hexadecimal};

/// Where the trust bundle is in a Secret.
pub(crate) const TRUST: &str = "ca.crt";

/// The longest value of a label, in characters.
const LONGEST_LABEL: usize = 63;

/// The longest name of a Secret, in characters.
const LONGEST_NAME: usize = 253;

/// The Secret with the CAs of a ServingCertificate, in the operator's own namespace.
pub(super) fn authority_key(own_namespace: &str, certificate: &ObjectKey) -> ObjectKey {
    let namespace = certificate.namespace.as_deref().unwrap_or_default();
    // A namespace has no dot in its name, so that no two ServingCertificates share a Secret.
    let name = shortened(&format!("{namespace}.{}", certificate.name), LONGEST_NAME);
    kinds::SECRET.object(Some(own_namespace), &name)
}

/// The value of the label on both Secrets that says which ServingCertificate they belong to.
pub(super) fn label(certificate: &str) -> String {
    shortened(certificate, LONGEST_LABEL)
}

/// The ServingCertificate that a Secret with CAs belongs to; `None` for any other object.
pub(super) fn owner_of_authority(secret: &Value) -> Option<ObjectKey> {
    let namespace = object::label(secret, names::SERVING_CERTIFICATE_NAMESPACE)?;
    let name = object::annotation(secret, names::SERVING_CERTIFICATE)?;
    Some(kinds::SERVING_CERTIFICATE.object(Some(namespace), name))
}

/// A value of a Secret's `data`.
pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> Value {
    STANDARD.encode(bytes).into()
}

/// Names that are too long end with a hash of themselves.
fn shortened(name: &str, longest: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let hash = Sha256::digest(name);
    let hash = hexadecimal(&hash[..4]);
    let end = longest - hash.len() - 1;
    let start: String = name.chars().take(end).collect();
    format!("{}-{hash}", start.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_names_stay_different_and_fit() {
        let name = |end: &str| format!("{}{end}", "a".repeat(240));
        let key = |end: &str| kinds::SERVING_CERTIFICATE.object(Some("some-namespace"), &name(end));
        let (one, other) = (authority_key("w", &key("x")), authority_key("w", &key("y")));
        assert_ne!(one, other);
        assert!(one.name.len() <= 253, "{one}");
        assert!(label(&name("x")).len() <= 63);
        assert_ne!(label(&name("x")), label(&name("y")));
        let short = kinds::SERVING_CERTIFICATE.object(Some("system"), "hook");
        assert_eq!(authority_key("w", &short).name, "system.hook");
        assert_eq!(label("hook"), "hook");
    }

    #[test]
    fn data_is_read_as_it_was_written() {
        let secret = json!({"data": {"tls.crt": encoded("text"), "other": "%"}});
        assert_eq!(object::data(&secret, "tls.crt"), Some(b"text".to_vec()));
        assert_eq!(object::data(&secret, "other"), None);
        assert_eq!(object::data(&secret, "none"), None);
    }
}
