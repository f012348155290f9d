//! NetworkPolicies while pods of two revisions serve.

use serde_json::{Value, json};
use windlass_object::{label_selector, names, object};

use crate::install::canary::revision;

/// Returns a NetworkPolicy that gives the pods of `deployment` the traffic that `desired`, the policies of
/// their own bundle, allow while those of the previous revision are in force: policies add up, and a policy
/// that selects no old pod does not restrict them. `live` are the existing policies of the install.
///
/// A direction that neither restricts is omitted, so that restrictions by other policies stay. Returns `None`
/// for a Deployment without a revision, and if neither direction is restricted.
pub fn admit_new_pods<'a>(
    deployment: &Value,
    desired: &[&Value],
    live: impl IntoIterator<Item = &'a Value>,
) -> Option<Value> {
    let revision = revision(deployment)?;
    let name = format!("{}-{revision}", object::text(deployment, "/metadata/name")?);
    let labels = deployment.pointer("/spec/template/metadata/labels")?;
    let selects = |policy: &&Value| label_selector::matches(&policy["spec"]["podSelector"], labels);
    let own: Vec<_> = desired.iter().copied().filter(selects).collect();
    // What was written of this one restricts nothing by itself.
    let others = |policy: &&Value| object::text(policy, "/metadata/name") != Some(&name);
    let live: Vec<_> = live.into_iter().filter(others).filter(selects).collect();
    let mut spec = json!({"podSelector": {"matchLabels": {names::REVISION: revision}}, "policyTypes": []});
    let mut types = Vec::new();
    for (direction, policy_type) in [("ingress", "Ingress"), ("egress", "Egress")] {
        if let Some(rules) = rules(&own, &live, direction, policy_type) {
            spec[direction] = rules;
            types.push(policy_type);
        }
    }
    if types.is_empty() {
        return None;
    }
    spec["policyTypes"] = json!(types);
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": object::text(deployment, "/metadata/namespace")?},
        "spec": spec,
    }))
}

/// What new pods may do in a direction: what the policies of their own bundle say, or anything where only one of the revision
/// before restricts it. `None` where neither does.
fn rules(own: &[&Value], live: &[&Value], direction: &str, policy_type: &str) -> Option<Value> {
    let restricts = |policy: &&&Value| restricts(policy, policy_type);
    let restricting: Vec<_> = own.iter().filter(restricts).collect();
    if restricting.is_empty() {
        return live.iter().any(|policy| restricts(&policy)).then(|| json!([{}]));
    }
    let rules = restricting
        .iter()
        .flat_map(|policy| object::items(policy, &format!("/spec/{direction}")));
    Some(rules.cloned().collect())
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

    fn policy(name: &str, spec: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec})
    }

    fn port(port: u16) -> Value {
        json!({"ports": [{"port": port}]})
    }

    #[test]
    fn new_pods_may_do_what_their_own_bundle_says() {
        let own = policy(
            "own",
            json!({"podSelector": {"matchLabels": {"app": "a"}}, "ingress": [port(8443)]}),
        );
        let all = policy("all", json!({"podSelector": {}, "ingress": [port(9443)]}));
        let other = policy(
            "other",
            json!({
                "podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]},
                "ingress": [port(1)], "egress": [port(1)],
            }),
        );
        let admitted = admit_new_pods(&deployment(), &[&own, &all, &other], [&other]).unwrap();
        let revision = revision(&deployment()).unwrap().to_owned();
        assert_eq!(
            admitted["spec"],
            json!({
                "podSelector": {"matchLabels": {names::REVISION: revision}},
                "policyTypes": ["Ingress"],
                "ingress": [port(8443), port(9443)],
            }),
            "egress is restricted by others at most"
        );
    }

    #[test]
    fn only_a_direction_that_a_policy_of_the_install_restricts_is_opened() {
        let of = |name: &str, types: Value, rules: Value| {
            let mut spec = rules;
            spec["podSelector"] = json!({});
            spec["policyTypes"] = types;
            policy(name, spec)
        };
        let ingress = of("p", json!(["Ingress"]), json!({"ingress": [port(8443)]}));
        let egress = of("p", json!(["Egress"]), json!({"egress": [port(443)]}));
        let deny = of("d", json!(["Ingress", "Egress"]), json!({}));
        let own = admit_new_pods(&deployment(), &[&ingress], []).unwrap();
        let elsewhere = policy(
            "e",
            json!({"podSelector": {"matchLabels": {"app": "b"}}, "ingress": []}),
        );
        for (case, desired, live, expected) in [
            ("nothing of ours", None, None, None),
            ("of other pods", Some(&elsewhere), Some(&elsewhere), None),
            ("what was written itself", None, Some(&own), None),
            (
                "new",
                Some(&ingress),
                None,
                Some(json!({"Ingress": [port(8443)]})),
            ),
            (
                "as before",
                Some(&ingress),
                Some(&ingress),
                Some(json!({"Ingress": [port(8443)]})),
            ),
            ("dropped", None, Some(&egress), Some(json!({"Egress": [{}]}))),
            (
                "in another direction",
                Some(&ingress),
                Some(&egress),
                Some(json!({"Ingress": [port(8443)], "Egress": [{}]})),
            ),
            (
                "denied",
                Some(&deny),
                Some(&ingress),
                Some(json!({"Ingress": [], "Egress": []})),
            ),
        ] {
            let desired: Vec<_> = desired.into_iter().collect();
            let admitted = admit_new_pods(&deployment(), &desired, live);
            let rules = admitted.map(|admitted| {
                let types = object::items(&admitted, "/spec/policyTypes").iter();
                let rules = types.filter_map(Value::as_str).map(|policy_type| {
                    let rules = admitted["spec"][policy_type.to_lowercase()].clone();
                    (policy_type.to_owned(), rules)
                });
                let rules: Value = rules.collect::<serde_json::Map<_, _>>().into();
                let spec = admitted["spec"].as_object().unwrap();
                assert_eq!(
                    spec.len(),
                    2 + rules.as_object().unwrap().len(),
                    "{case}: {spec:?}"
                );
                rules
            });
            assert_eq!(rules, expected, "{case}");
        }
    }
}
