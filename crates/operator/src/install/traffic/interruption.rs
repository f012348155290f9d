//! Deployments whose pods of two revisions cannot run beside each other, or may not be able to.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_object::{json, label_selector, object};

use super::hold::is_held;
use crate::install::canary::revision;

/// Why the pods of a new revision of `deployment` cannot come up beside the old ones, if these are like them; `None` where they
/// can.
fn exclusive_use(deployment: &Value) -> Option<String> {
    exclusion(deployment, deployment)
}

/// Returns why new pods of `new` cannot start while those of the Deployment `old` run; `None` if they can.
pub fn exclusion(new: &Value, old: &Value) -> Option<String> {
    let (pods, others) = (pod_spec(new)?, pod_spec(old)?);
    if uses_host_network(pods) && uses_host_network(others) {
        return Some("its pods use the network of their node".to_owned());
    }
    let taken = host_ports(others);
    if let Some((port, _)) = host_ports(pods).intersection(&taken).next() {
        return Some(format!("its pods use port {port} of their node"));
    }
    let is_recreated = object::text(new, "/spec/strategy/type") == Some("Recreate");
    let taken: BTreeSet<_> = claims(others).collect();
    let claim = claims(pods).find(|claim| is_recreated && taken.contains(claim))?;
    Some(format!(
        "its pods use the PersistentVolumeClaim {claim} one after the other"
    ))
}

/// Returns why new pods of `new` may not be schedulable while those of the Deployment `old` run, which
/// depends on the number of nodes and on volumes; `None` if nothing prevents it.
pub fn crowding(new: &Value, old: &Value) -> Option<String> {
    let terms = "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let mut terms = object::items(pod_spec(new)?, terms).iter();
    if let Some(term) = terms.find(|term| is_about(term, old)) {
        let key = object::text(term, "/topologyKey").unwrap_or_default();
        return Some(format!(
            "a podAntiAffinity forbids two of its pods on the same {key}: add nodes, or lower spec.config.windlass.replicas"
        ));
    }
    let taken: BTreeSet<_> = pod_spec(old).into_iter().flat_map(claims).collect();
    let claim = claims(pod_spec(new)?).find(|claim| taken.contains(claim))?;
    Some(format!(
        "its pods share the PersistentVolumeClaim {claim}, which may allow only one pod or one node"
    ))
}

/// Reports whether the pods of the Deployment `old` end before those of `new` start: both cannot run at the
/// same time, or possibly cannot and an interruption is allowed.
pub fn makes_way(new: &Value, old: &Value, allow_interruption: bool) -> bool {
    exclusion(new, old).is_some() || (allow_interruption && crowding(new, old).is_some())
}

/// Whether pods of the revision before end before new ones are ready: these cannot come up beside them, or may not be able to and
/// an interruption is allowed. `live` is what is there of the Deployment.
pub fn ends_old_pods_first(desired: &Value, live: Option<&Value>, allow_interruption: bool) -> bool {
    let excluded = match live {
        Some(live) if revision(live) != revision(desired) => exclusion(desired, live).is_some(),
        // The pods before were others, or it would not be held.
        Some(live) if is_held(live) => false,
        _ => exclusive_use(desired).is_some(),
    };
    excluded || (allow_interruption && crowding(desired, desired).is_some())
}

/// `deployment` with its own strategy, or with one that ends a pod first where new pods may not find a place and that would end
/// none.
pub fn ending_old_pods_first(deployment: &Value) -> Value {
    let mut ending_old_pods_first = deployment.clone();
    if crowding(deployment, deployment).is_some() && !ends_a_pod_first(deployment) {
        json::fields(&mut ending_old_pods_first, &["spec"]).insert(
            "strategy".into(),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
        );
    }
    ending_old_pods_first
}

/// Whether a rollout ends an old pod although no new one is available. A part of the replicas is rounded down, 25% by default;
/// where neither an additional pod nor a missing one is allowed, one may be missing (`ResolveFenceposts` of
/// pkg/controller/deployment/util).
fn ends_a_pod_first(deployment: &Value) -> bool {
    let strategy = deployment.pointer("/spec/strategy").unwrap_or(&Value::Null);
    if object::text(strategy, "/type") == Some("Recreate") {
        return true;
    }
    let replicas = deployment
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let limit = |field: &str| match strategy.pointer(&format!("/rollingUpdate/{field}")) {
        Some(Value::String(percent)) => {
            let percent: i64 = percent.trim_end_matches('%').parse().unwrap_or(0);
            (replicas * percent / 100, percent == 0)
        }
        Some(count) => (count.as_i64().unwrap_or(0), count.as_i64() == Some(0)),
        None => (replicas / 4, false),
    };
    limit("maxUnavailable").0 > 0 || limit("maxSurge").1
}

/// Whether a term of a podAntiAffinity is about the pods of a Deployment, of any revision.
fn is_about(term: &Value, deployment: &Value) -> bool {
    let namespace = object::text(deployment, "/metadata/namespace");
    let namespaces = object::items(term, "/namespaces");
    let is_here = namespaces.is_empty() || namespaces.iter().any(|named| named.as_str() == namespace);
    // With the hash of the template among them, only pods of one revision are meant.
    let is_of_one_revision = object::items(term, "/matchLabelKeys")
        .iter()
        .any(|key| key == "pod-template-hash");
    let labels = deployment
        .pointer("/spec/template/metadata/labels")
        .unwrap_or(&Value::Null);
    let selector = term.get("labelSelector").filter(|selector| selector.is_object());
    is_here
        && !is_of_one_revision
        && selector.is_some_and(|selector| label_selector::matches(selector, labels))
}

fn pod_spec(deployment: &Value) -> Option<&Value> {
    deployment.pointer("/spec/template/spec")
}

fn uses_host_network(pod_spec: &Value) -> bool {
    pod_spec.get("hostNetwork") == Some(&Value::Bool(true))
}

/// The ports of their node that pods use, with their protocol. In the network of the node every port is one of those.
fn host_ports(pod_spec: &Value) -> BTreeSet<(i64, &str)> {
    let field = if uses_host_network(pod_spec) {
        "containerPort"
    } else {
        "hostPort"
    };
    object::items(pod_spec, "/containers")
        .iter()
        .flat_map(|container| object::items(container, "/ports"))
        .filter_map(|port| {
            let protocol = object::text(port, "/protocol").unwrap_or("TCP");
            Some((port.get(field)?.as_i64()?, protocol))
        })
        .filter(|(port, _)| *port != 0)
        .collect()
}

fn claims(pod_spec: &Value) -> impl Iterator<Item = &str> {
    object::items(pod_spec, "/volumes")
        .iter()
        .filter_map(|volume| object::text(volume, "/persistentVolumeClaim/claimName"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{canary::stamp, traffic::held};

    fn deployment(strategy: &str, spec: Value) -> Value {
        let mut deployment = json!({
            "metadata": {"name": "d", "namespace": "n"},
            "spec": {
                "strategy": {"type": strategy},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": spec},
            },
        });
        stamp(&mut deployment);
        deployment
    }

    fn ports(port: u16) -> Value {
        json!({"containers": [{"ports": [{"containerPort": 9443}, {"hostPort": port}]}]})
    }

    fn volumes() -> Value {
        json!({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]})
    }

    fn apart(term: Value) -> Value {
        let mut whole =
            json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}});
        json_patch::merge(&mut whole, &term);
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [whole]}}})
    }

    #[test]
    fn pods_that_need_the_same_port_or_volume_exclude_each_other() {
        for (strategy, spec, expected) in [
            ("RollingUpdate", json!({"hostNetwork": true}), Some("network")),
            ("RollingUpdate", ports(9443), Some("port 9443")),
            ("RollingUpdate", ports(0), None),
            ("Recreate", volumes(), Some("PersistentVolumeClaim data")),
            ("RollingUpdate", volumes(), None),
            ("Recreate", json!({"hostNetwork": false}), None),
        ] {
            let found = exclusive_use(&deployment(strategy, spec.clone()));
            assert_eq!(found.is_some(), expected.is_some(), "{spec}: {found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }

    #[test]
    fn pods_with_another_port_or_volume_do_not_exclude_each_other() {
        let on_host = json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 9443}]}]});
        let datagrams = json!({"containers": [{"ports": [{"hostPort": 9443, "protocol": "UDP"}]}]});
        let other = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "other"}}]});
        for (new, old, expected) in [
            (ports(9443), ports(9443), true),
            (ports(9443), ports(9444), false),
            (ports(9443), datagrams, false),
            (ports(9443), on_host.clone(), true),
            (ports(9444), on_host, false),
            (volumes(), volumes(), true),
            (volumes(), other, false),
        ] {
            let (new, old) = (deployment("Recreate", new), deployment("Recreate", old));
            assert_eq!(exclusion(&new, &old).is_some(), expected, "{new} {old}");
        }
    }

    #[test]
    fn pods_may_not_find_a_node_or_a_volume_beside_their_like() {
        for (spec, expected) in [
            (apart(json!({})), Some("kubernetes.io/hostname")),
            (apart(json!({"namespaces": ["n"]})), Some("podAntiAffinity")),
            (apart(json!({"namespaces": ["elsewhere"]})), None),
            (apart(json!({"matchLabelKeys": ["pod-template-hash"]})), None),
            (
                apart(json!({"labelSelector": {"matchLabels": {"app": "b"}}})),
                None,
            ),
            (apart(json!({"labelSelector": null})), None),
            (volumes(), Some("PersistentVolumeClaim data")),
            (ports(9443), None),
        ] {
            let deployment = deployment("RollingUpdate", spec.clone());
            let found = crowding(&deployment, &deployment);
            assert_eq!(found.is_some(), expected.is_some(), "{spec}: {found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
            // Those that may take no room are no reason to end them.
            let others = super::tests::deployment("RollingUpdate", json!({}));
            let is_apart = spec.get("affinity").is_some() && expected.is_some();
            assert_eq!(makes_way(&deployment, &others, true), is_apart, "{spec}");
            assert!(!makes_way(&deployment, &others, false));
        }
        assert!(makes_way(
            &deployment("Recreate", ports(1)),
            &deployment("Recreate", ports(1)),
            false
        ));
    }

    #[test]
    fn old_pods_give_way_where_they_must_or_may() {
        let on = |port| deployment("RollingUpdate", ports(port));
        let crowded = deployment("RollingUpdate", apart(json!({})));
        let plain = deployment("RollingUpdate", json!({}));
        for (desired, live, allowed, expected) in [
            (on(9443), Some(on(9443)), false, true),
            (on(9443), Some(on(9444)), false, false),
            (on(9443), Some(on(9444)), true, false),
            (on(9443), Some(held(&on(9443))), true, false),
            (on(9443), None, false, true),
            (crowded.clone(), Some(plain.clone()), false, false),
            (crowded.clone(), Some(plain.clone()), true, true),
            (crowded.clone(), Some(held(&crowded)), true, true),
            (plain.clone(), Some(crowded.clone()), true, false),
        ] {
            let found = ends_old_pods_first(&desired, live.as_ref(), allowed);
            assert_eq!(found, expected, "{desired} {live:?} {allowed}");
        }
    }

    #[test]
    fn a_strategy_that_would_wait_for_room_for_ever_ends_a_pod_first() {
        let first = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
        for (replicas, strategy, is_kept) in [
            (1, json!({"type": "Recreate"}), true),
            (3, json!({"rollingUpdate": {"maxUnavailable": 1}}), true),
            (3, json!({"rollingUpdate": {"maxUnavailable": "34%"}}), true),
            (4, json!(null), true),
            (
                1,
                json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
                true,
            ),
            (3, json!(null), false),
            (3, json!({"rollingUpdate": {"maxUnavailable": "33%"}}), false),
            (3, json!({"rollingUpdate": {"maxUnavailable": 0}}), false),
        ] {
            let mut crowded = deployment("RollingUpdate", apart(json!({})));
            crowded["spec"]["replicas"] = replicas.into();
            crowded["spec"]["strategy"] = strategy.clone();
            let expected = if is_kept { &strategy } else { &first };
            assert_eq!(
                ending_old_pods_first(&crowded)["spec"]["strategy"],
                *expected,
                "{crowded}"
            );
        }
        let alone = deployment("RollingUpdate", ports(9443));
        assert_eq!(ending_old_pods_first(&alone), alone);
    }
}
