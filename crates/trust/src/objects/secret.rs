//! Labels and data that both Secrets of a ServingCertificate have.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_object::{ObjectKey, text::hexadecimal};

use crate::pki::{DnsNames, KeyAlgorithm};

/// What a ServingCertificate requires of its Secrets.
#[derive(Clone, Copy, Debug)]
pub struct CertificateRequirements<'a> {
    /// Key of the ServingCertificate.
    pub certificate: &'a ObjectKey,
    /// `metadata.uid` of the ServingCertificate.
    pub uid: &'a str,
    /// Name of the Secret that servers mount, in the namespace of the ServingCertificate.
    pub secret_name: &'a str,
    /// The names that servers are called by.
    pub names: &'a DnsNames,
    /// The algorithm of all keys.
    pub algorithm: KeyAlgorithm,
}

/// Length limit of a label value, in characters.
const MAX_LABEL_LENGTH: usize = 63;

/// Returns the value of the label on both Secrets that names their ServingCertificate.
pub fn label_value(certificate: &str) -> String {
    shortened(certificate, MAX_LABEL_LENGTH)
}

/// Encodes a value for the `data` of a Secret.
pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> Value {
    STANDARD.encode(bytes).into()
}

/// Shortens a long name and appends its hash.
pub(super) fn shortened(name: &str, longest: usize) -> String {
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
    use windlass_object::object;

    #[test]
    fn long_labels_stay_unique_and_fit() {
        let name = |end: &str| format!("{}{end}", "a".repeat(240));
        assert!(label_value(&name("x")).len() <= MAX_LABEL_LENGTH);
        assert_ne!(label_value(&name("x")), label_value(&name("y")));
        assert_eq!(label_value("hook"), "hook");
    }

    #[test]
    fn data_round_trips() {
        let secret = json!({"data": {"tls.crt": encoded("text"), "other": "%"}});
        assert_eq!(object::data(&secret, "tls.crt"), Some(b"text".to_vec()));
        assert_eq!(object::data(&secret, "other"), None);
        assert_eq!(object::data(&secret, "none"), None);
    }
}
