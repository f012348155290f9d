//! The rights that a bundle gets, most dangerous rules first.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use windlass_object::{ObjectKey, object};

/// The rules of one role, and where they apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Grant {
    /// The namespace; `None` is the whole cluster.
    pub(super) namespace: Option<String>,
    /// The subjects, such as `ServiceAccount system/operator`; empty if no binding of the bundle refers to
    /// the role.
    pub(super) subjects: BTreeSet<String>,
    pub(super) role: String,
    pub(super) rules: Vec<GrantedRule>,
}

/// A rule that the bundle grants, described for the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct GrantedRule {
    /// Why the rule allows escalation; `None` if it does not.
    pub(super) danger: Option<&'static str>,
    /// The verbs and resources.
    pub(super) text: String,
}

/// Returns the grants in `objects`: cluster-wide ones first, and in each the dangerous rules first.
pub(super) fn grants<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Vec<Grant> {
    let objects: Vec<_> = objects.into_iter().collect();
    let mut grants = Vec::new();
    for role in &objects {
        let Some(key) = ObjectKey::from_object(role) else {
            continue;
        };
        if !matches!(key.kind.as_str(), "Role" | "ClusterRole") {
            continue;
        }
        let bound = objects.iter().filter(|binding| binds(binding, &key));
        let mut places: Vec<(Option<String>, BTreeSet<String>)> = Vec::new();
        for binding in bound {
            let namespace = object::text(binding, "/metadata/namespace").map(str::to_owned);
            let subjects = object::items(binding, "/subjects").iter().map(subject);
            match places.iter_mut().find(|(place, _)| *place == namespace) {
                Some((_, known)) => known.extend(subjects),
                None => places.push((namespace, subjects.collect())),
            }
        }
        if places.is_empty() {
            places.push((key.namespace.clone(), BTreeSet::new()));
        }
        for (namespace, subjects) in places {
            let mut rules: Vec<_> = object::items(role, "/rules")
                .iter()
                .map(|rule| describe_rule(rule, namespace.is_none()))
                .collect();
            rules.sort_by_key(|rule| rule.danger.is_none());
            grants.push(Grant {
                namespace,
                subjects,
                role: format!("{} {}", key.kind, key.name),
                rules,
            });
        }
    }
    grants.sort();
    grants
}

fn binds(binding: &Value, role: &ObjectKey) -> bool {
    let text = |pointer| object::text(binding, pointer);
    let is_here = role.namespace.is_none() || text("/metadata/namespace") == role.namespace.as_deref();
    text("/kind").is_some_and(|kind| kind.ends_with("RoleBinding"))
        && text("/roleRef/kind") == Some(&role.kind)
        && text("/roleRef/name") == Some(&role.name)
        && is_here
}

fn subject(subject: &Value) -> String {
    let text = |pointer| object::text(subject, pointer).unwrap_or_default();
    match object::text(subject, "/namespace") {
        Some(namespace) => format!("{} {namespace}/{}", text("/kind"), text("/name")),
        None => format!("{} {}", text("/kind"), text("/name")),
    }
}

fn describe_rule(rule: &Value, cluster_wide: bool) -> GrantedRule {
    let list = |field: &str| -> Vec<&str> {
        let items = object::items(rule, &format!("/{field}")).iter();
        items.filter_map(Value::as_str).collect()
    };
    let (groups, resources, verbs) = (list("apiGroups"), list("resources"), list("verbs"));
    let names = list("resourceNames");
    let mut text = if resources.is_empty() {
        list("nonResourceURLs").join(", ")
    } else {
        let groups: Vec<_> = groups.iter().filter(|group| !group.is_empty()).copied().collect();
        let of = if groups.is_empty() {
            String::new()
        } else {
            format!(" of {}", groups.join(", "))
        };
        format!("{}{of}", resources.join(", "))
    };
    if !names.is_empty() {
        text = format!("{text} named {}", names.join(", "));
    }
    GrantedRule {
        danger: danger(&groups, &resources, &verbs, cluster_wide),
        text: format!("{text}: {}", verbs.join(", ")),
    }
}

/// Returns why a rule allows escalation (Kubernetes: "Role Based Access Control Good Practices").
fn danger(groups: &[&str], resources: &[&str], verbs: &[&str], cluster_wide: bool) -> Option<&'static str> {
    let any = |of: &[&str], words: &[&str]| of.iter().any(|word| *word == "*" || words.contains(word));
    let writes = any(verbs, &["create", "update", "patch"]);
    let core = any(groups, &[""]);
    let on = |group: &str, words: &[&str]| any(groups, &[group]) && any(resources, words);
    let roles = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];
    let rbac = "rbac.authorization.k8s.io";
    if groups.contains(&"*") && resources.contains(&"*") && verbs.contains(&"*") {
        return Some("everything");
    }
    if on(rbac, &roles) && any(verbs, &["escalate", "bind"]) {
        return Some("can grant itself any right");
    }
    let identities = ["users", "groups", "serviceaccounts"];
    if core && any(resources, &identities) && any(verbs, &["impersonate"]) {
        return Some("can impersonate users");
    }
    if core && any(resources, &["serviceaccounts/token"]) && any(verbs, &["create"]) {
        return Some("can act as any ServiceAccount");
    }
    if core && any(resources, &["secrets"]) && any(verbs, &["get", "list", "watch"]) {
        return Some(if cluster_wide {
            "can read every Secret in the cluster"
        } else {
            "can read every Secret in the namespace"
        });
    }
    if core && any(resources, &["nodes/proxy"]) {
        return Some("can reach every pod through its node");
    }
    if core && any(resources, &["pods/exec", "pods/attach"]) && any(verbs, &["create", "get"]) {
        return Some("can run commands in pods");
    }
    let webhooks = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    if on("admissionregistration.k8s.io", &webhooks) && writes {
        return Some("can see and change all API writes");
    }
    let workloads = on(
        "apps",
        &["deployments", "daemonsets", "statefulsets", "replicasets"],
    ) || on("batch", &["jobs", "cronjobs"])
        || (core && any(resources, &["pods"]));
    if cluster_wide && workloads && writes {
        return Some("can run pods as any ServiceAccount");
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
        json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
    }

    #[test]
    fn rules_that_allow_escalation_are_marked() {
        let rbac = "rbac.authorization.k8s.io";
        for (rule, cluster_wide, expected) in [
            (rule(&["*"], &["*"], &["*"]), true, Some("everything")),
            (
                rule(&[rbac], &["clusterroles"], &["escalate"]),
                true,
                Some("can grant itself any right"),
            ),
            (
                rule(&[rbac], &["roles"], &["*"]),
                false,
                Some("can grant itself any right"),
            ),
            (rule(&[rbac], &["roles"], &["get"]), true, None),
            (
                rule(&[""], &["users"], &["impersonate"]),
                true,
                Some("can impersonate users"),
            ),
            (
                rule(&[""], &["secrets"], &["list"]),
                true,
                Some("can read every Secret in the cluster"),
            ),
            (
                rule(&[""], &["secrets"], &["get"]),
                false,
                Some("can read every Secret in the namespace"),
            ),
            (rule(&[""], &["configmaps"], &["*"]), true, None),
            (
                rule(&["apps"], &["deployments"], &["create"]),
                true,
                Some("can run pods as any ServiceAccount"),
            ),
            (rule(&["apps"], &["deployments"], &["create"]), false, None),
            (rule(&["example.com"], &["secrets"], &["get"]), true, None),
        ] {
            assert_eq!(describe_rule(&rule, cluster_wide).danger, expected, "{rule}");
        }
    }

    #[test]
    fn cluster_wide_grants_come_first_and_name_their_subject() {
        let role = |kind: &str, name: &str, namespace: Option<&str>| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
                "rules": [rule(&["example.com"], &["widgets"], &["get"]), rule(&[""], &["secrets"], &["get"])],
            })
        };
        let binding = |kind: &str, of: &str, name: &str, namespace: Option<&str>| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                "metadata": {"name": "b", "namespace": namespace},
                "roleRef": {"kind": of, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": "op", "namespace": "n"}],
            })
        };
        let objects = [
            role("Role", "leases", Some("n")),
            role("ClusterRole", "wide", None),
            role("ClusterRole", "viewer", None),
            binding("RoleBinding", "Role", "leases", Some("n")),
            binding("ClusterRoleBinding", "ClusterRole", "wide", None),
        ];
        let grants = grants(&objects);
        let described: Vec<_> = grants
            .iter()
            .map(|grant| {
                (
                    grant.namespace.as_deref(),
                    grant.role.as_str(),
                    grant.subjects.len(),
                )
            })
            .collect();
        assert_eq!(
            described,
            [
                (None, "ClusterRole viewer", 0),
                (None, "ClusterRole wide", 1),
                (Some("n"), "Role leases", 1)
            ]
        );
        let rules: Vec<_> = grants[1].rules.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(rules, ["secrets: get", "widgets of example.com: get"]);
    }
}
