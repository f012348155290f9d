//! Authorization by RBAC.

use std::sync::Arc;

use serde_json::Value;

use super::{authentication::User, call::ResourcePath};
use crate::{
    StatusError, Subject,
    storage::{Collection, StorageKey, Store},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Fails with 403 unless RBAC allows the request.
pub(super) fn check(
    store: &Store,
    user: &User,
    verb: &str,
    target: &ResourcePath,
) -> Result<(), StatusError> {
    if allows(store, user, verb, target) {
        return Ok(());
    }
    let ResourcePath {
        group,
        namespace,
        resource,
        name,
        ..
    } = target;
    let qualified = if group.is_empty() {
        resource.clone()
    } else {
        format!("{resource}.{group}")
    };
    let about = if name.is_empty() {
        qualified
    } else {
        format!("{qualified} {name:?}")
    };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let message = format!(
        "{about} is forbidden: User {:?} cannot {verb} resource {:?} in API group {group:?} {scope}",
        user.name,
        target.qualified_resource()
    );
    Err(StatusError {
        subject: Subject {
            name: name.clone(),
            group: group.clone(),
            kind: resource.clone(),
            ..Subject::default()
        },
        ..StatusError::new(403, "Forbidden", message)
    })
}

/// Reports whether RBAC allows the request.
pub(super) fn allows(store: &Store, user: &User, verb: &str, target: &ResourcePath) -> bool {
    user.groups.iter().any(|group| group == "system:masters")
        || rules(store, user, &target.namespace)
            .iter()
            .any(|rule| rule_allows(rule, verb, target))
}

/// Returns all rules that apply to `user` in a namespace, or cluster-wide if it is empty.
pub(super) fn rules(store: &Store, user: &User, namespace: &str) -> Vec<Value> {
    let everywhere = store
        .list(Collection {
            group: GROUP,
            resource: "clusterrolebindings",
            namespace: None,
        })
        .0;
    let mut bindings: Vec<(Arc<Value>, &str)> =
        everywhere.into_iter().map(|(_, binding)| (binding, "")).collect();
    if !namespace.is_empty() {
        let here = Collection {
            group: GROUP,
            resource: "rolebindings",
            namespace: Some(namespace),
        };
        bindings.extend(
            store
                .list(here)
                .0
                .into_iter()
                .map(|(_, binding)| (binding, namespace)),
        );
    }
    let mut rules = Vec::new();
    for (binding, namespace) in bindings {
        let subjects = binding["subjects"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if subjects
            .iter()
            .any(|subject| is_subject(subject, user, namespace))
        {
            rules.extend(role_rules(store, &binding["roleRef"], namespace));
        }
    }
    rules
}

/// Returns the rules of the role that a binding refers to.
pub(super) fn role_rules(store: &Store, reference: &Value, namespace: &str) -> Vec<Value> {
    let is_cluster_role = reference["kind"] == "ClusterRole";
    let key = StorageKey {
        group: GROUP.to_owned(),
        resource: if is_cluster_role { "clusterroles" } else { "roles" }.to_owned(),
        namespace: if is_cluster_role {
            String::new()
        } else {
            namespace.to_owned()
        },
        name: reference["name"].as_str().unwrap_or_default().to_owned(),
    };
    let role = store.read(&key);
    role.and_then(|role| role["rules"].as_array().cloned())
        .unwrap_or_default()
}

fn is_subject(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str() {
        Some("User") => name == user.name,
        Some("Group") => user.all_groups().iter().any(|group| group == name),
        Some("ServiceAccount") => {
            let namespace = subject["namespace"].as_str().unwrap_or(namespace);
            user.name == format!("system:serviceaccount:{namespace}:{name}")
        }
        _ => false,
    }
}

fn rule_allows(rule: &Value, verb: &str, target: &ResourcePath) -> bool {
    let resource = target.qualified_resource();
    let any_of = |field: &str, wanted: &str| {
        rule[field]
            .as_array()
            .is_some_and(|entries| entries.iter().any(|entry| entry == "*" || entry == wanted))
    };
    let all_subresources = format!("*/{}", target.subresource);
    let names = rule["resourceNames"].as_array().filter(|names| !names.is_empty());
    any_of("verbs", verb)
        && any_of("apiGroups", &target.group)
        && (any_of("resources", &resource) || any_of("resources", &all_subresources))
        && names.is_none_or(|names| names.iter().any(|name| *name == target.name.as_str()))
}

/// Reports whether `user` holds all of `rules`, so that granting them does not escalate privileges.
///
/// A simplified form of the real check: a single rule of the user must cover each of `rules`.
pub(super) fn covers(store: &Store, user: &User, namespace: &str, wanted: &[Value]) -> bool {
    if user.groups.iter().any(|group| group == "system:masters") {
        return true;
    }
    let own = rules(store, user, namespace);
    let subset = |wanted: &Value, own: &Value, field: &str| {
        let own = own[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let wanted = wanted[field].as_array().map(Vec::as_slice).unwrap_or_default();
        own.iter().any(|entry| entry == "*") || wanted.iter().all(|entry| own.contains(entry))
    };
    wanted.iter().all(|rule| {
        own.iter().any(|own| {
            ["verbs", "apiGroups", "resources", "nonResourceURLs"]
                .iter()
                .all(|field| subset(rule, own, field))
        })
    })
}

/// Reports whether `user` may access a non-resource path.
pub(super) fn allows_path(store: &Store, user: &User, verb: &str, path: &str) -> bool {
    let any_of = |rule: &Value, field: &str, matches: &dyn Fn(&str) -> bool| {
        rule[field]
            .as_array()
            .is_some_and(|entries| entries.iter().filter_map(Value::as_str).any(matches))
    };
    user.groups.iter().any(|group| group == "system:masters")
        || rules(store, user, "").iter().any(|rule| {
            any_of(rule, "verbs", &|entry| entry == "*" || entry == verb)
                && any_of(rule, "nonResourceURLs", &|entry| match entry.strip_suffix('*') {
                    Some(prefix) => path.starts_with(prefix),
                    None => path == entry,
                })
        })
}
