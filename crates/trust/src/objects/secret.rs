//! What both Secrets of a ServingCertificate have: labels and data.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_object::{ObjectKey, text::hexadecimal};

use crate::pki::{DnsNames, KeyAlgorithm};

/// What a ServingCertificate asks of its Secrets.
#[derive(Clone, Copy, Debug)]
pub struct CertificateRequirements<'a> {
    /// Names the ServingCertificate.
    pub certificate: &'a ObjectKey,
    /// `metadata.uid` of the ServingCertificate.
    pub uid: &'a str,
    /// The Secret that servers mount, in the namespace of the ServingCertificate.
    pub secret_name: &'a str,
    /// The names that are served.
    pub names: &'a DnsNames,
    /// What kind all keys are of.
    pub algorithm: KeyAlgorithm,
}

/// The longest value of a label, in characters.
const LONGEST_LABEL: usize = 63;

/// The value of the label on both Secrets that says which ServingCertificate they belong to.
pub fn label_value(certificate: &str) -> String {
    shortened(certificate, LONGEST_LABEL)
}

/// A value of a Secret's `data`.
pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> Value {
    STANDARD.encode(bytes).into()
}

/// Names that are too long end with a hash of themselves.
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
    fn long_labels_stay_different_and_fit() {
        let name = |end: &str| format!("{}{end}", "a".repeat(240));
        assert!(label_value(&name("x")).len() <= LONGEST_LABEL);
        assert_ne!(label_value(&name("x")), label_value(&name("y")));
        assert_eq!(label_value("hook"), "hook");
    }

    #[test]
    fn data_is_read_as_it_was_written() {
        let secret = json!({"data": {"tls.crt": encoded("text"), "other": "%"}});
        assert_eq!(object::data(&secret, "tls.crt"), Some(b"text".to_vec()));
        assert_eq!(object::data(&secret, "other"), None);
        assert_eq!(object::data(&secret, "none"), None);
    }
}
