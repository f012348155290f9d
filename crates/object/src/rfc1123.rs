//! The DNS names of RFC 1123, as Kubernetes takes them for names of objects: lower-case letters, digits and inner hyphens
//! (`IsDNS1123Label` and `IsDNS1123Subdomain` of `k8s.io/apimachinery/pkg/util/validation`).

/// The most characters of a label (RFC 1035 §2.3.4, RFC 1123 §2.1), and so of names of namespaces and Services.
pub const LABEL_LENGTH: usize = 63;

/// The most characters of a name with its dots, and so of names of most objects. On the wire it is 255 octets (RFC 1035
/// §2.3.4), two of which are no characters: the length of the first label, and the root.
pub const SUBDOMAIN_LENGTH: usize = 253;

/// Whether `text` is a label, of at most [`LABEL_LENGTH`].
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_LENGTH && is_label_text(text)
}

/// Whether `text` is labels with dots between them, of at most [`SUBDOMAIN_LENGTH`]. As in Kubernetes, one of the labels
/// may be longer than [`LABEL_LENGTH`]: names of objects are not looked up in DNS.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LENGTH && is_subdomain_text(text)
}

/// Whether `text` is written as a label is, however long.
pub fn is_label_text(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
}

/// Whether `text` is written as a subdomain is, however long.
pub fn is_subdomain_text(text: &str) -> bool {
    text.split('.').all(is_label_text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABEL: &str = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

    #[test]
    fn names_end_where_kubernetes_ends_them() {
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
        fn what_the_grammar_makes_is_a_name(labels in prop::collection::vec(LABEL, 1..6)) {
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
        fn a_name_leads_nowhere_else(text in "[-a-cA-C0-9./%_ \u{e4}]{0,6}") {
            if is_subdomain(&text) {
                let ends = text.starts_with(['-', '.']) || text.ends_with(['-', '.']);
                prop_assert!(!ends && !text.contains("..") && !text.contains(['/', '%', '_', ' ', 'ä']));
                prop_assert_eq!(text.to_lowercase(), text.clone());
            }
            prop_assert_eq!(is_label(&text), is_subdomain(&text) && !text.contains('.'));
        }
    }
}
