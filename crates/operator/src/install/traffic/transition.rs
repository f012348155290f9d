//! What is applied of an object while pods of two revisions serve: nothing that takes from the old ones what they live on.

use serde_json::{Value, json};
use windlass_bundle::Phase;
use windlass_object::object;

/// Returns the body to apply for `desired` while old pods may be called and `live` exists; `None` if nothing
/// is written yet.
///
/// Roles have the rules of both revisions, and their bindings the subjects. Other existing objects, such as
/// ConfigMaps and Services, change when the old pods are no longer called. No NetworkPolicy is applied,
/// because even a new one may select old pods ([`super::admit_new_pods`] admits the new ones).
pub fn transitional(desired: &Value, live: Option<&Value>) -> Option<Value> {
    let kind = object::text(desired, "/kind").unwrap_or_default();
    if kind == "NetworkPolicy" {
        return None;
    }
    let Some(live) = live else {
        return Some(desired.clone());
    };
    match kind {
        "Role" | "ClusterRole" if !is_aggregated(desired) && !is_aggregated(live) => {
            Some(with_both(desired, live, "rules"))
        }
        "RoleBinding" | "ClusterRoleBinding" if refers_to_same(desired, live) => {
            Some(with_both(desired, live, "subjects"))
        }
        _ if matches!(
            Phase::for_kind(kind),
            Phase::Identity | Phase::Configuration | Phase::Services
        ) =>
        {
            None
        }
        _ => Some(desired.clone()),
    }
}

/// `desired` with those items of `live` in a list that it lacks.
fn with_both(desired: &Value, live: &Value, list: &str) -> Value {
    let pointer = format!("/{list}");
    let wanted = object::items(desired, &pointer);
    let kept = object::items(live, &pointer)
        .iter()
        .filter(|item| !wanted.iter().any(|wanted| is_same(wanted, item)));
    let both: Vec<_> = wanted.iter().chain(kept).cloned().collect();
    let mut body = desired.clone();
    if !both.is_empty() {
        body[list] = both.into();
    }
    body
}

/// Whether a live item is `wanted`, to which the API server has added defaults.
fn is_same(wanted: &Value, live: &Value) -> bool {
    match (wanted.as_object(), live.as_object()) {
        (Some(wanted), Some(live)) => {
            let is_default = |name: &str, value: &Value| {
                wanted.get(name) == Some(value) || (name == "apiGroup" && !wanted.contains_key(name))
            };
            wanted.iter().all(|(name, value)| {
                live.get(name) == Some(value) || value.as_str() == Some("") || *value == json!([])
            }) && live.iter().all(|(name, value)| is_default(name, value))
        }
        _ => wanted == live,
    }
}

fn is_aggregated(role: &Value) -> bool {
    role.get("aggregationRule").is_some_and(|rule| !rule.is_null())
}

fn refers_to_same(desired: &Value, live: &Value) -> bool {
    ["kind", "name"]
        .iter()
        .all(|field| desired["roleRef"][*field] == live["roleRef"][*field])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_pods_keep_their_rights_and_new_ones_have_theirs() {
        let role = |rules: Value| json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules});
        let rule = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
        let live = role(json!([rule("a"), rule("b")]));
        let desired = role(json!([rule("b"), rule("c")]));
        let both = transitional(&desired, Some(&live)).unwrap();
        assert_eq!(both["rules"], json!([rule("b"), rule("c"), rule("a")]));
        assert_eq!(transitional(&desired, Some(&both)), Some(both), "applied once");
        let binding = |subject: Value, role: &str| json!({"kind": "RoleBinding", "roleRef": {"kind": "Role", "name": role}, "subjects": [subject]});
        let subject = json!({"kind": "ServiceAccount", "name": "s", "namespace": "n"});
        let user = json!({"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"});
        let plain = json!({"kind": "User", "name": "u"});
        assert_eq!(
            transitional(&binding(subject.clone(), "r"), Some(&binding(user.clone(), "r"))).unwrap()["subjects"],
            json!([subject, user])
        );
        assert_eq!(
            transitional(&binding(plain.clone(), "r"), Some(&binding(user, "r"))).unwrap()["subjects"],
            json!([plain])
        );
        assert_eq!(
            transitional(&binding(subject.clone(), "other"), Some(&binding(subject, "r"))),
            None
        );
    }

    #[test]
    fn what_old_pods_read_stays_until_they_are_gone() {
        for kind in [
            "ConfigMap",
            "Secret",
            "Service",
            "PodDisruptionBudget",
            "ServiceMonitor",
        ] {
            let object = |value: &str| json!({"kind": kind, "data": value});
            assert_eq!(transitional(&object("b"), Some(&object("a"))), None, "{kind}");
            assert_eq!(transitional(&object("b"), None), Some(object("b")), "{kind}");
        }
        let policy = json!({"kind": "NetworkPolicy"});
        assert_eq!(transitional(&policy, None), None);
        assert_eq!(transitional(&policy, Some(&policy)), None);
        let certificate = json!({"kind": "ServingCertificate"});
        assert_eq!(
            transitional(&certificate, Some(&certificate)),
            Some(certificate.clone())
        );
    }
}
