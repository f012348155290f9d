//! Compares the operator's rights with the audit log of a real API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde_json::Value;

use crate::{operator, request::text};

/// Verbs that no request has: the API server checks them when a role is written ("Privilege escalation
/// prevention and bootstrapping" in the Kubernetes documentation of RBAC). The scenario
/// `the_operator_grants_only_what_it_is_permitted_to_grant` removes each of them to show that it is needed.
const ASKED_WITHIN: [&str; 2] = ["escalate", "bind"];

/// One right: a verb on a resource, or on a subresource as `resource/subresource`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) verb: String,
}

/// What the operator asked one API server for.
#[derive(Debug, Default)]
struct Asked {
    used: BTreeSet<Right>,
    /// By request path.
    forbidden: BTreeMap<String, Right>,
}

/// Checks that the API server allowed all requests of the operator. If `did_everything`, also checks that the
/// operator used all its rights.
///
/// # Errors
///
/// Lists each forbidden request and each unused right.
pub fn check(logs: &[PathBuf], did_everything: bool) -> anyhow::Result<()> {
    let mut roles = windlass::commands::manifests::objects()?;
    roles.retain(|role| text(role, "/metadata/name") == operator::ACCOUNT);
    let optional_roles = windlass::commands::manifests::extension_config_policy_objects();
    // The operator also requests these where they are not applied, to detect whether they are.
    let optional = granted(&optional_roles, |_| true);
    roles.extend(optional_roles);
    let by_name = granted(&roles, |rule| rule["resourceNames"].is_array());
    let certificates = windlass::commands::manifests::certificates_objects();
    let mut certificates_by_name = granted(&certificates, |rule| rule["resourceNames"].is_array());
    certificates_by_name.extend(optional.clone());
    let policies = windlass::commands::manifests::policies_objects();
    let policies_by_name = granted(&policies, |rule| rule["resourceNames"].is_array());
    let mut used = BTreeSet::new();
    let mut forbidden = BTreeMap::new();
    for log in logs {
        let read = |account, by_name| {
            let asked = Asked::read(log, &operator::user_of(account), by_name);
            asked.with_context(|| format!("reading the audit log {}", log.display()))
        };
        let asked = read(operator::ACCOUNT, &by_name)?;
        used.extend(asked.used);
        forbidden.extend(asked.forbidden);
        // These rights are a subset of the others, and only one scenario uses them.
        forbidden.extend(read(operator::CERTIFICATES_ACCOUNT, &certificates_by_name)?.forbidden);
        forbidden.extend(read(operator::POLICIES_ACCOUNT, &policies_by_name)?.forbidden);
    }
    anyhow::ensure!(!used.is_empty(), "the operator sent no request");
    forbidden.retain(|_, right| !optional.contains(right));
    let mut problems: Vec<_> = forbidden
        .into_iter()
        .map(|(path, right)| format!("forbidden: {right} ({path})"))
        .collect();
    if did_everything {
        problems.extend(
            unused(granted(&roles, |_| true), &used)
                .iter()
                .map(|right| format!("not used: {right}")),
        );
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// The rights in `granted` that are not in `used`. A wildcard right counts as used if no other right allows
/// the request. A streamed list counts as a watch; where the API server has no streamed lists, it needs the
/// right to list.
fn unused(granted: BTreeSet<Right>, used: &BTreeSet<Right>) -> Vec<Right> {
    let (any, named): (BTreeSet<_>, BTreeSet<_>) =
        granted.into_iter().partition(|right| right.resource == "*");
    let needs = |right: &Right| {
        used.iter()
            .any(|used| used.verb == right.verb && !named.contains(used))
    };
    let any = any.iter().filter(|right| !needs(right));
    let is_streamed = |right: &&Right| {
        let watch = Right {
            verb: "watch".to_owned(),
            ..(*right).clone()
        };
        right.verb == "list" && used.contains(&watch)
    };
    let unused = named.difference(used).filter(|right| !is_streamed(right));
    unused.chain(any).cloned().collect()
}

/// The rights that the roles in `objects` grant, by the rules that `counts` selects.
fn granted(objects: &[Value], counts: impl Fn(&Value) -> bool) -> BTreeSet<Right> {
    let rules = objects
        .iter()
        .flat_map(|object| object["rules"].as_array().into_iter().flatten())
        .filter(|rule| counts(rule));
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in words(rule, "apiGroups") {
            for resource in words(rule, "resources") {
                for verb in words(rule, "verbs").filter(|verb| !ASKED_WITHIN.contains(verb)) {
                    rights.insert(Right {
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        verb: verb.to_owned(),
                    });
                }
            }
        }
    }
    rights
}

fn words<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    rule[field]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

impl Asked {
    /// Reads the requests of `user` from an audit log. Requests for objects that a right in `by_name` names
    /// are ignored for other rights.
    fn read(log: &Path, user: &str, by_name: &BTreeSet<Right>) -> anyhow::Result<Self> {
        let mut used = BTreeSet::new();
        let (mut allowed, mut forbidden) = (BTreeSet::new(), BTreeMap::new());
        for line in BufReader::new(File::open(log)?).lines() {
            let event: Value = serde_json::from_str(&line?)?;
            if text(&event, "/user/username") != user {
                continue;
            }
            // A request that impersonates another user is judged by the rights of that user.
            if event.get("impersonatedUser").is_some() {
                used.insert(Right::impersonation());
                continue;
            }
            let right = Right::from_event(&event);
            let name = match by_name.contains(&right) {
                true => text(&event, "/objectRef/name"),
                false => "",
            };
            let namespace = text(&event, "/objectRef/namespace");
            let asked = (right.clone(), namespace.to_owned(), name.to_owned());
            if text(&event, "/annotations/authorization.k8s.io~1decision") == "forbid" {
                forbidden.insert(asked, text(&event, "/requestURI").to_owned());
            } else {
                allowed.insert(asked);
            }
            // An apply of an object that does not exist also needs the right to create it.
            if right.verb == "patch" && event["responseStatus"]["code"] == 201 {
                used.insert(Right {
                    verb: "create".to_owned(),
                    ..right.clone()
                });
            }
            used.insert(right);
        }
        // A freshly started API server rejects requests until it has read the roles.
        forbidden.retain(|asked, _| !allowed.contains(asked));
        let forbidden = forbidden.into_iter().map(|((right, ..), path)| (path, right));
        Ok(Self {
            used,
            forbidden: forbidden.collect(),
        })
    }
}

impl Right {
    /// The right to impersonate ServiceAccounts.
    fn impersonation() -> Self {
        Self {
            group: String::new(),
            resource: "serviceaccounts".to_owned(),
            verb: "impersonate".to_owned(),
        }
    }

    /// The right that the request of an audit event needs.
    fn from_event(event: &Value) -> Self {
        let resource = text(event, "/objectRef/resource");
        let resource = match text(event, "/objectRef/subresource") {
            "" => resource.to_owned(),
            subresource => format!("{resource}/{subresource}"),
        };
        Self {
            group: text(event, "/objectRef/apiGroup").to_owned(),
            resource,
            verb: text(event, "/verb").to_owned(),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            resource,
            verb,
        } = self;
        match group.as_str() {
            "" => write!(f, "{verb} {resource}"),
            group => write!(f, "{verb} {resource}.{group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    fn checked(events: &[Value], did_everything: bool) -> anyhow::Result<()> {
        let mut log = tempfile::NamedTempFile::new()?;
        for event in events {
            writeln!(log, "{event}")?;
        }
        check(&[log.path().to_owned()], did_everything)
    }

    fn event(verb: &str, resource: &str, decision: &str) -> Value {
        json!({"user": {"username": operator::user()}, "verb": verb, "requestURI": "/where",
               "objectRef": {"resource": resource}, "annotations": {"authorization.k8s.io/decision": decision}})
    }

    #[test]
    fn a_forbidden_request_is_named() {
        checked(&[event("list", "pods", "allow")], false).unwrap();
        let error = checked(&[event("watch", "pods", "forbid")], false).unwrap_err();
        assert_eq!(error.to_string(), "forbidden: watch pods (/where)");
    }

    #[test]
    fn a_request_that_was_forbidden_only_at_first_is_forgiven() {
        let events = [event("list", "pods", "forbid"), event("list", "pods", "allow")];
        checked(&events, false).unwrap();
    }

    #[test]
    fn a_right_to_one_object_does_not_excuse_a_request_of_another() {
        let lease = |name: &str, decision| {
            let mut lease = event("get", "leases", decision);
            lease["objectRef"] =
                json!({"apiGroup": "coordination.k8s.io", "resource": "leases", "name": name});
            lease
        };
        let own = lease("windlass", "allow");
        checked(&[lease("windlass", "forbid"), own.clone()], false).unwrap();
        let error = checked(&[lease("other", "forbid"), own], false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "forbidden: get leases.coordination.k8s.io (/where)"
        );
    }

    #[test]
    fn forbidden_requests_of_the_certificate_controllers_are_named() {
        let mut watch = event("watch", "pods", "forbid");
        watch["user"]["username"] = json!(operator::user_of(operator::CERTIFICATES_ACCOUNT));
        let error = checked(&[event("list", "pods", "allow"), watch], false).unwrap_err();
        assert_eq!(error.to_string(), "forbidden: watch pods (/where)");
    }

    #[test]
    fn rights_that_are_optional_may_be_lacking_and_are_not_idle() {
        let mut binding = event("get", "validatingadmissionpolicybindings", "forbid");
        binding["objectRef"]["apiGroup"] = "admissionregistration.k8s.io".into();
        checked(&[event("list", "pods", "allow"), binding.clone()], false).unwrap();
        let error = checked(&[binding], true).unwrap_err().to_string();
        let idle = "not used: patch validatingadmissionpolicybindings.admissionregistration.k8s.io";
        assert!(error.lines().any(|line| line == idle), "{error}");
    }

    #[test]
    fn impersonated_requests_need_only_the_right_to_impersonate() {
        let mut deputy = event("create", "roles", "forbid");
        deputy["impersonatedUser"] = json!({"username": "system:serviceaccount:n:tenant"});
        checked(std::slice::from_ref(&deputy), false).unwrap();
        let idle = |events: &[Value]| checked(events, true).unwrap_err().to_string();
        let unused = "not used: impersonate serviceaccounts";
        assert!(
            idle(&[event("list", "pods", "allow")])
                .lines()
                .any(|line| line == unused)
        );
        assert!(!idle(&[deputy]).lines().any(|line| line == unused));
    }

    #[test]
    fn requests_of_others_do_not_count() {
        let mut other = event("watch", "pods", "forbid");
        other["user"]["username"] = json!("admin");
        assert_eq!(
            checked(&[other], false).unwrap_err().to_string(),
            "the operator sent no request"
        );
    }

    #[test]
    fn a_right_that_was_never_used_is_named() {
        let mut created = event("patch", "services", "allow");
        created["responseStatus"] = json!({"code": 201});
        let error = checked(&[event("list", "pods", "allow"), created], true).unwrap_err();
        let error = error.to_string();
        let names = |right: &str| error.lines().any(|line| line == format!("not used: {right}"));
        assert!(names("patch bundledeployments/status.windlass.dev") && names("delete services"));
        assert!(names("list *.*"), "only pods were listed");
        assert!(!names("list pods") && !names("patch services") && !names("create services"));
        assert!(!error.contains("escalate"));
    }
}
