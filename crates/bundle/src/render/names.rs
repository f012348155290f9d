//! Names of rendered objects. Operators and their documentation hard-code them, so they are OLM's, but never
//! longer than Kubernetes allows.

use serde_json::Value;
use windlass_object::rfc1123::LABEL_LENGTH;

use super::hash::base36_sha224;

/// Returns `base-suffix`, with `base` cut to the maximum length of a Service name, which OLM applies to all
/// generated names.
pub(super) fn suffixed(base: &str, suffix: &str) -> String {
    let room = LABEL_LENGTH.saturating_sub(suffix.len() + 1);
    let end = (0..=room.min(base.len()))
        .rev()
        .find(|end| base.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}-{suffix}", &base[..end])
}

/// The Service of a Deployment that serves webhooks. A Service name cannot contain the dots of a Deployment
/// name.
pub(crate) fn service(deployment: &str) -> String {
    suffixed(&deployment.replace('.', "-"), "service")
}

/// The second Service of a Deployment that serves webhooks. Webhooks call one of the two, while the other is
/// prepared for the pods of the next revision.
pub(crate) fn green(service: &str) -> String {
    suffixed(service, "green")
}

/// The Secret with the serving certificate of a Service.
pub(crate) fn secret(service: &str) -> String {
    suffixed(service, "cert")
}

/// The role, and its binding, that grants `permission` to a ServiceAccount.
pub(super) fn role(csv: &str, service_account: &str, permission: &Value) -> String {
    suffixed(&format!("{csv}-{service_account}"), &base36_sha224(permission))
}

/// The webhook configuration of a webhook definition, and the webhook in it.
pub(super) fn webhook(generate_name: &str) -> &str {
    generate_name.strip_suffix('-').unwrap_or(generate_name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_base_is_cut_only_if_the_name_is_too_long() {
        assert_eq!(
            suffixed(&"a".repeat(55), "service"),
            format!("{}-service", "a".repeat(55))
        );
        // OLM generates a name of 64 characters here.
        assert_eq!(
            suffixed(&"a".repeat(56), "service"),
            format!("{}-service", "a".repeat(55))
        );
        assert_eq!(
            suffixed(&"a".repeat(57), "service"),
            format!("{}-service", "a".repeat(55))
        );
        assert_eq!(suffixed("é", &"s".repeat(61)), format!("-{}", "s".repeat(61)));
    }

    #[test]
    fn a_service_has_no_dots() {
        assert_eq!(service("widgets.v1"), "widgets-v1-service");
        assert_eq!(secret("widgets-v1-service"), "widgets-v1-service-cert");
    }

    #[test]
    fn one_trailing_dash_of_a_generate_name_is_removed() {
        assert_eq!(webhook("vwidget.example.com-"), "vwidget.example.com");
        assert_eq!(webhook("vwidget.example.com"), "vwidget.example.com");
        assert_eq!(webhook("v--"), "v-");
    }

    proptest! {
        #[test]
        fn service_and_secret_names_are_dns_labels(deployment in "[a-z]([-a-z0-9.]{0,80}[a-z0-9])?") {
            let service = service(&deployment);
            for name in [&service, &secret(&service)] {
                prop_assert!(name.len() <= 63, "{}", name);
                prop_assert!(name.starts_with(|first: char| first.is_ascii_lowercase()), "{}", name);
                prop_assert!(name.ends_with(|last: char| last.is_ascii_alphanumeric()), "{}", name);
                prop_assert!(name.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric()), "{}", name);
            }
        }

        #[test]
        fn role_names_never_exceed_the_limit(csv in ".{0,70}", account in ".{0,70}") {
            let name = role(&csv, &account, &json!({}));
            prop_assert!(name.len() <= 63, "{}", name);
        }
    }
}
