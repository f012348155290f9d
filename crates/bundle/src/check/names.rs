//! Valid names in Kubernetes; the texts are those of `k8s.io/apimachinery/pkg/util/validation`.

use windlass_object::rfc1123::{LABEL_LENGTH, SUBDOMAIN_LENGTH, is_label_text, is_subdomain_text};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
     an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SEGMENT: &str = "must not be '.' or '..', and must not contain '/' or '%'";

/// Returns why `name` is not a DNS-1123 subdomain.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    messages(name, SUBDOMAIN_LENGTH, is_subdomain_text(name), SUBDOMAIN)
}

/// Returns why `name` is not a DNS-1035 label, which the name of a Service must be.
pub(super) fn service(name: &str) -> Vec<String> {
    let fits = is_label_text(name) && name.starts_with(|first: char| first.is_ascii_lowercase());
    messages(name, LABEL_LENGTH, fits, LABEL)
}

/// Returns why `name` is not a path segment, which the name of an RBAC object must be.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    let fits = !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '%']);
    messages(name, usize::MAX, fits, SEGMENT)
}

/// Returns why `name` is not a label key: `NAME` or `SUBDOMAIN/NAME`.
pub(super) fn label_name(name: &str) -> Vec<String> {
    let (prefix, name) = name
        .rsplit_once('/')
        .map_or((None, name), |(prefix, name)| (Some(prefix), name));
    let mut all: Vec<String> = prefix
        .into_iter()
        .flat_map(subdomain)
        .map(|message| format!("prefix part {message}"))
        .collect();
    all.extend(messages(name, LABEL_LENGTH, is_label_part(name), LABEL_NAME));
    all
}

/// Returns why `value` is not a label value.
pub(super) fn label_value(value: &str) -> Vec<String> {
    let fits = value.is_empty() || is_label_part(value);
    messages(value, LABEL_LENGTH, fits, LABEL_VALUE)
}

fn messages(name: &str, length: usize, fits: bool, message: &str) -> Vec<String> {
    let too_long = (name.len() > length).then(|| format!("must be no more than {length} characters"));
    let malformed = (!fits).then(|| message.to_owned());
    too_long.into_iter().chain(malformed).collect()
}

/// Reports whether a label's name or value has valid characters; its length is not checked.
fn is_label_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdomains_services_and_path_segments_differ() {
        let long = "a".repeat(64);
        for (name, is_subdomain, is_service, is_segment) in [
            ("a", true, true, true),
            ("a-b.c9", true, false, true),
            ("9a", true, false, true),
            ("a-", false, false, true),
            ("a..b", false, false, true),
            ("A", false, false, true),
            ("system:a", false, false, true),
            ("a/b", false, false, false),
            ("..", false, false, false),
            ("", false, false, false),
            (&long, true, false, true),
        ] {
            assert_eq!(subdomain(name).is_empty(), is_subdomain, "{name}");
            assert_eq!(service(name).is_empty(), is_service, "{name}");
            assert_eq!(path_segment(name).is_empty(), is_segment, "{name}");
        }
    }

    #[test]
    fn label_keys_and_values_are_validated() {
        for (name, fits) in [
            ("a", true),
            ("A_b.c", true),
            ("a.b/C", true),
            ("", false),
            ("a/", false),
            ("A/b", false),
            ("a/b/c", false),
        ] {
            assert_eq!(label_name(name).is_empty(), fits, "{name}");
        }
        for (value, fits) in [
            ("", true),
            ("A_b.c", true),
            ("-a", false),
            ("a b", false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(label_value(value).is_empty(), fits, "{value}");
        }
    }
}
