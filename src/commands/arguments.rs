//! Parsers for names in arguments.

use windlass_object::rfc1123::{LABEL_LENGTH, is_label, is_subdomain};

/// Parses the name of a namespace: an RFC 1123 label.
///
/// # Errors
///
/// When `text` is not a label.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    if is_label(text) {
        Ok(text.to_owned())
    } else {
        Err(
            "a namespace must be an RFC 1123 label: at most 63 of a-z, 0-9 and -, starting and ending with a letter or \
             a digit"
                .to_owned(),
        )
    }
}

/// Parses the name of a ServiceAccount.
///
/// # Errors
///
/// When `text` is not an RFC 1123 subdomain.
pub(super) fn service_account(text: &str) -> Result<String, String> {
    if is_subdomain(text) {
        Ok(text.to_owned())
    } else {
        Err(
            "the name of a ServiceAccount must be an RFC 1123 subdomain: a-z, 0-9, - and ., starting and ending with a \
             letter or a digit"
                .to_owned(),
        )
    }
}

/// Parses the name of a Secret.
///
/// # Errors
///
/// When `text` is not an RFC 1123 subdomain.
pub(super) fn pull_secret(text: &str) -> Result<String, String> {
    if is_subdomain(text) {
        Ok(text.to_owned())
    } else {
        Err(
            "the name of a Secret must be an RFC 1123 subdomain: a-z, 0-9, - and ., starting and ending with a letter or \
             a digit"
                .to_owned(),
        )
    }
}

/// Parses the name of a BundleDeployment: an RFC 1123 subdomain of at most 63 characters, since it becomes a
/// label value.
///
/// # Errors
///
/// When `text` is not such a name.
pub(super) fn bundle_deployment(text: &str) -> Result<String, String> {
    if text.len() <= LABEL_LENGTH && is_subdomain(text) {
        Ok(text.to_owned())
    } else {
        Err(
            "the name of a BundleDeployment must be an RFC 1123 subdomain: at most 63 of a-z, 0-9, - and ., starting \
             and ending with a letter or a digit"
                .to_owned(),
        )
    }
}

/// Parses `NAMESPACE/NAME`.
///
/// # Errors
///
/// When `text` has another form.
pub(super) fn namespaced(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_subdomain(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("expected NAMESPACE/NAME, as printed by `windlass certs`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_labels() {
        for (text, is_namespace) in [
            ("a", true),
            ("0-a", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a.b", false),
            ("A", false),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(namespace(text).is_ok(), is_namespace, "{text}");
        }
    }

    #[test]
    fn names_cannot_change_the_request_path() {
        for (text, is_name) in [
            ("argocd-operator", true),
            ("a.b", true),
            ("a..b", false),
            ("../a", false),
            ("a,metadata.name!=b", false),
            ("a%2f", false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(bundle_deployment(text).is_ok(), is_name, "{text}");
        }
        assert_eq!(namespaced("a/b.c"), Ok(("a".into(), "b.c".into())));
        for text in ["a", "/b", "a/", "a/b/c", "a.b/c", "a/../b"] {
            assert!(namespaced(text).is_err(), "{text}");
        }
    }
}
