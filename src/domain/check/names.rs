//! What Kubernetes accepts as a name; the texts are those of `k8s.io/apimachinery/pkg/util/validation`.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SEGMENT: &str = "must not be '.' or '..', and must not contain '/' or '%'";

/// The longest label value.
pub(super) const LABEL_LENGTH: usize = 63;

const SUBDOMAIN_LENGTH: usize = 253;

/// What keeps `name` from being a DNS-1123 subdomain.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    let fits = name.split('.').all(is_label);
    messages(name, SUBDOMAIN_LENGTH, fits, SUBDOMAIN)
}

/// What keeps `name` from being a DNS-1035 label, as Services are named.
pub(super) fn service(name: &str) -> Vec<String> {
    let fits = is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase());
    messages(name, LABEL_LENGTH, fits, LABEL)
}

/// What keeps `name` from being a segment of a path, as objects of RBAC are named.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    let fits = !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '%']);
    messages(name, usize::MAX, fits, SEGMENT)
}

fn messages(name: &str, length: usize, fits: bool, message: &str) -> Vec<String> {
    let too_long = (name.len() > length).then(|| format!("must be no more than {length} characters"));
    let malformed = (!fits).then(|| message.to_owned());
    too_long.into_iter().chain(malformed).collect()
}

/// A DNS-1123 label of any length.
fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
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
}
