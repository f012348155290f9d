//! DNS names of RFC 1123, which Kubernetes requires for names of objects: lower-case letters, digits and
//! inner hyphens (`IsDNS1123Label` and `IsDNS1123Subdomain` of `k8s.io/apimachinery/pkg/util/validation`).

/// The maximum length of a label (RFC 1035 §2.3.4, RFC 1123 §2.1), and so of names of namespaces and
/// Services.
pub const LABEL_LENGTH: usize = 63;

/// The maximum length of a name with dots, and so of names of most objects. The limit on the wire is 255
/// octets (RFC 1035 §2.3.4), two of which are the length of the first label and the root.
pub const SUBDOMAIN_LENGTH: usize = 253;

/// Reports whether `text` is a label of at most [`LABEL_LENGTH`].
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_LENGTH && is_label_text(text)
}

/// Reports whether `text` is dot-separated labels, of at most [`SUBDOMAIN_LENGTH`]. As in Kubernetes, a label
/// may be longer than [`LABEL_LENGTH`]: names of objects are not looked up in DNS.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LENGTH && is_subdomain_text(text)
}

/// Reports whether `text` has the syntax of a label, of any length.
pub fn is_label_text(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
}

/// Reports whether `text` has the syntax of a subdomain, of any length.
pub fn is_subdomain_text(text: &str) -> bool {
    text.split('.').all(is_label_text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABEL: &str = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

    #[test]
    fn names_have_the_length_limits_of_kubernetes() {
        let long = "a".repeat(64);
        for (text, label, subdomain) in [
            ("a", true, true),
            ("0-a", true, true),
            ("a.b", false, true),
            ("", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("a..b", false, false),
            ("a.", false, false),
            ("A", false, false),
            ("ä", false, false),
            ("a_b", false, false),
            (&long[1..], true, true),
            (&long, false, true),
            (&"a".repeat(253), false, true),
            (&"a".repeat(254), false, false),
        ] {
            assert_eq!(is_label(text), label, "{text}");
            assert_eq!(is_subdomain(text), subdomain, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_of_the_grammar_is_valid(labels in prop::collection::vec(LABEL, 1..6)) {
            for label in &labels {
                prop_assert!(is_label(label) && is_subdomain(label));
                let (before, after) = (format!("-{label}"), format!("{label}-"));
                prop_assert!(!is_label(&before) && !is_label(&after));
            }
            let name = labels.join(".");
            prop_assert!(is_subdomain_text(&name));
            prop_assert_eq!(is_subdomain(&name), name.len() <= SUBDOMAIN_LENGTH);
        }

        #[test]
        fn a_valid_name_is_safe_in_a_path(text in "[-a-cA-C0-9./%_ \u{e4}]{0,6}") {
            if is_subdomain(&text) {
                let ends = text.starts_with(['-', '.']) || text.ends_with(['-', '.']);
                prop_assert!(!ends && !text.contains("..") && !text.contains(['/', '%', '_', ' ', 'ä']));
                prop_assert_eq!(text.to_lowercase(), text.clone());
            }
            prop_assert_eq!(is_label(&text), is_subdomain(&text) && !text.contains('.'));
        }
    }
}
