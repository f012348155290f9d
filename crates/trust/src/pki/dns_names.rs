//! The DNS names of a serving certificate.

use std::net::IpAddr;

use thiserror::Error;
use windlass_object::rfc1123::{LABEL_LENGTH, SUBDOMAIN_LENGTH, is_label};

/// The distinct DNS names of one Service. The first is the one that the API server dials,
/// `SERVICE.NAMESPACE.svc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsNames {
    primary: String,
    others: Vec<String>,
}

/// Some names are not DNS names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct InvalidDnsNames(
    /// One sentence per invalid name.
    pub Vec<String>,
);

impl DnsNames {
    /// Returns the names of a Service inside the cluster, followed by `extra` names, all in lower case. An
    /// extra name may start with `*.`.
    ///
    /// # Errors
    ///
    /// If any name is not a DNS name; the error lists all of them.
    pub fn for_service(service: &str, namespace: &str, extra: &[String]) -> Result<Self, InvalidDnsNames> {
        let primary = format!("{service}.{namespace}.svc");
        let mut others = vec![
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
        ];
        for name in extra.iter().map(|name| name.to_ascii_lowercase()) {
            if name != primary && !others.contains(&name) {
                others.push(name);
            }
        }
        let names = Self { primary, others };
        let problems: Vec<_> = names.iter().filter_map(problem).collect();
        if problems.is_empty() {
            Ok(names)
        } else {
            Err(InvalidDnsNames(problems))
        }
    }

    /// Returns the first name, `SERVICE.NAMESPACE.svc`.
    pub fn primary(&self) -> &str {
        &self.primary
    }

    /// Returns all names in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.primary.as_str()).chain(self.others.iter().map(String::as_str))
    }

    /// Reports whether a certificate with these names is valid for `host`.
    pub fn match_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.iter().any(|name| match name.strip_prefix("*.") {
            // A wildcard matches exactly one label (RFC 6125 §6.4.3).
            Some(domain) => host.split_once('.').is_some_and(|(_, rest)| rest == domain),
            None => name == host,
        })
    }
}

/// Reports whether `name`, which may start with `*.`, is in the domain `subtree` (RFC 5280 §4.2.1.10).
pub(super) fn is_within(name: &str, subtree: &str) -> bool {
    let name = without_wildcard(name);
    name == subtree || name.strip_suffix(subtree).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns the domain that a name constraint for `name` needs.
pub(super) fn without_wildcard(name: &str) -> &str {
    name.strip_prefix("*.").unwrap_or(name)
}

fn problem(name: &str) -> Option<String> {
    let rest = without_wildcard(name);
    let reason = if name.len() > SUBDOMAIN_LENGTH {
        format!("longer than {SUBDOMAIN_LENGTH} characters")
    } else if name.parse::<IpAddr>().is_ok() {
        "is an IP address, and only DNS names can be served".to_owned()
    } else if !rest.split('.').all(is_label) {
        format!(
            "does not consist of labels of 1 to {LABEL_LENGTH} letters, digits and inner hyphens, separated by dots"
        )
    } else if rest
        .rsplit('.')
        .next()
        .is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()))
    {
        // Clients parse such a name as an IP address (WHATWG URL, RFC 3696 §2).
        "ends with a label that is a number".to_owned()
    } else {
        return None;
    };
    Some(format!("{name:?} is not a DNS name: it {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(extra: &[&str]) -> Result<DnsNames, InvalidDnsNames> {
        let extra: Vec<_> = extra.iter().map(|&name| name.to_owned()).collect();
        DnsNames::for_service("hook", "system", &extra)
    }

    #[test]
    fn the_service_name_comes_first_and_names_are_unique() {
        let names = names(&[
            "Hook.Example.com",
            "hook.system",
            "hook.example.com",
            "*.example.com",
        ])
        .unwrap();
        assert_eq!(names.primary(), "hook.system.svc");
        assert_eq!(
            names.iter().collect::<Vec<_>>(),
            [
                "hook.system.svc",
                "hook.system.svc.cluster.local",
                "hook.system",
                "hook.example.com",
                "*.example.com"
            ]
        );
    }

    #[test]
    fn every_invalid_name_is_reported() {
        let long = "a".repeat(64);
        let wrong = [
            "", "a..b", "-a", "a_b", "10.0.0.1", "::1", "a.1", "*", "a.*.b", &long, "a b", "ä",
        ];
        let InvalidDnsNames(problems) = names(&wrong).unwrap_err();
        assert_eq!(problems.len(), wrong.len(), "{problems:#?}");
        assert!(problems[4].contains("\"10.0.0.1\" is not a DNS name: it is an IP address"));
        assert!(DnsNames::for_service(&long, "n", &[]).is_err());
        assert!(names(&[&vec!["a"; 127].join(".")]).is_ok());
        assert!(names(&[&vec!["a"; 128].join(".")]).is_err());
    }

    #[test]
    fn hosts_are_matched_as_clients_match_them() {
        let names = names(&["*.example.com"]).unwrap();
        for host in [
            "hook.system.svc",
            "HOOK.system",
            "a.example.com",
            "hook.system.svc.",
        ] {
            assert!(names.match_host(host), "{host}");
        }
        for host in [
            "hook.other.svc",
            "example.com",
            "a.b.example.com",
            "x.hook.system.svc",
            "",
        ] {
            assert!(!names.match_host(host), "{host}");
        }
    }

    #[test]
    fn a_subtree_contains_its_domain_and_subdomains() {
        for (name, subtree, within) in [
            ("a.b", "a.b", true),
            ("x.a.b", "a.b", true),
            ("xa.b", "a.b", false),
            ("b", "a.b", false),
            ("*.a.b", "a.b", true),
            ("*.b", "a.b", false),
        ] {
            assert_eq!(is_within(name, subtree), within, "{name} in {subtree}");
        }
    }
}
