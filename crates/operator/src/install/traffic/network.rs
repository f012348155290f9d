//! NetworkPolicies while pods of two revisions serve.

use serde_json::{Value, json};
use windlass_object::{names, object};

use crate::install::canary::revision;

/// A NetworkPolicy that lets the pods of `deployment` do what `policies` of its own bundle say, as long as those of the
/// revision before are still in force: policies add up, and what selects no pod of the old revision takes nothing from it.
///
/// `None` for a Deployment without a revision.
pub fn admit_new_pods(deployment: &Value, policies: &[&Value]) -> Option<Value> {
    let revision = revision(deployment)?;
    let labels = deployment.pointer("/spec/template/metadata/labels")?;
    let own: Vec<_> = policies
        .iter()
        .filter(|policy| selects(&policy["spec"]["podSelector"], labels))
        .collect();
    let rules = |direction: &str, policy_type: &str| {
        let restricting: Vec<_> = own
            .iter()
            .filter(|policy| restricts(policy, policy_type))
            .collect();
        if restricting.is_empty() {
            return json!([{}]);
        }
        restricting
            .iter()
            .flat_map(|policy| object::items(policy, &format!("/spec/{direction}")))
            .cloned()
            .collect()
    };
    let name = object::text(deployment, "/metadata/name")?;
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": format!("{name}-{revision}"),
            "namespace": object::text(deployment, "/metadata/namespace")?,
        },
        "spec": {
            "podSelector": {"matchLabels": {names::REVISION: revision}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": rules("ingress", "Ingress"),
            "egress": rules("egress", "Egress"),
        },
    }))
}

/// Whether a policy restricts a direction (`networking.k8s.io/v1` NetworkPolicySpec: where it names no types, ingress, and
/// egress if it has rules for that).
fn restricts(policy: &Value, policy_type: &str) -> bool {
    let types = object::items(policy, "/spec/policyTypes");
    if types.is_empty() {
        return policy_type == "Ingress" || !object::items(policy, "/spec/egress").is_empty();
    }
    types.iter().any(|listed| listed == policy_type)
}

/// Whether a label selector selects an object with these labels.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |name: &str| labels.get(name);
    let matches_labels = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .all(|(name, value)| label(name) == Some(value));
    matches_labels
        && object::items(selector, "/matchExpressions")
            .iter()
            .all(|expression| {
                let found = label(object::text(expression, "/key").unwrap_or_default());
                let listed = found.is_some_and(|value| object::items(expression, "/values").contains(value));
                match object::text(expression, "/operator") {
                    Some("In") => listed,
                    Some("NotIn") => !listed,
                    Some("Exists") => found.is_some(),
                    Some("DoesNotExist") => found.is_none(),
                    _ => false,
                }
            })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::canary::stamp;

    fn deployment() -> Value {
        let mut deployment = json!({
            "metadata": {"name": "d", "namespace": "n"},
            "spec": {"template": {"metadata": {"labels": {"app": "a"}}, "spec": {}}},
        });
        stamp(&mut deployment);
        deployment
    }

    #[test]
    fn new_pods_may_do_what_their_own_bundle_says() {
        let port = |port: u16| json!({"ports": [{"port": port}]});
        let policy = |selector: Value, ingress: Value| json!({"spec": {"podSelector": selector, "ingress": [ingress]}});
        let own = policy(json!({"matchLabels": {"app": "a"}}), port(8443));
        let all = policy(json!({}), port(9443));
        let other = policy(
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}),
            port(1),
        );
        let admitted = admit_new_pods(&deployment(), &[&own, &all, &other]).unwrap();
        assert_eq!(admitted["spec"]["ingress"], json!([port(8443), port(9443)]));
        assert_eq!(admitted["spec"]["egress"], json!([{}]), "nothing restricts it");
        let revision = revision(&deployment()).unwrap().to_owned();
        assert_eq!(
            admitted["spec"]["podSelector"],
            json!({"matchLabels": {names::REVISION: revision}})
        );
    }

    #[test]
    fn where_nothing_restricts_them_new_pods_may_do_anything() {
        let admitted = admit_new_pods(&deployment(), &[]).unwrap();
        assert_eq!(admitted["spec"]["ingress"], json!([{}]));
        let deny = json!({"spec": {"podSelector": {}, "policyTypes": ["Egress"]}});
        let admitted = admit_new_pods(&deployment(), &[&deny]).unwrap();
        assert_eq!(admitted["spec"]["egress"], json!([]));
        assert_eq!(admitted["spec"]["ingress"], json!([{}]));
    }
}
