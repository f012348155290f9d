//! The Deployment behind a Service: what a restart of it costs, and restarting it.

use json_patch::Patch;
use serde_json::{Value, json};
use windlass_object::{names, object, patch};

use crate::rotation;

/// What a rotation needs to know of a Deployment, and whether its rollout goes on.
pub fn read_deployment(deployment: &Value, progressing: bool) -> rotation::ObservedDeployment {
    let restarted_for = deployment
        .pointer("/spec/template/metadata/annotations")
        .and_then(|annotations| annotations.get(names::RESTARTED_FOR)?.as_str()?.parse().ok());
    rotation::ObservedDeployment {
        deployment: object::text(deployment, "/metadata/name")
            .unwrap_or_default()
            .to_owned(),
        costs_requests: costs_requests(deployment),
        progressing,
        restarted_for,
    }
}

/// The patch that restarts the pods of a Deployment which is still as it was read.
pub fn restart_patch(deployment: &Value, leaf: &rotation::Fingerprint) -> Patch {
    let path = "/spec/template/metadata/annotations";
    let mut annotations = deployment.pointer(path).cloned().unwrap_or_else(|| json!({}));
    annotations[names::RESTARTED_FOR] = leaf.to_string().into();
    let mut operations = vec![patch::test(
        "/metadata/resourceVersion",
        &deployment["metadata"]["resourceVersion"],
    )];
    if deployment.pointer("/spec/template/metadata").is_none() {
        operations.push(patch::put("/spec/template/metadata", json!({})));
    }
    operations.push(patch::put(path, annotations));
    Patch(operations)
}

/// Whether a moment may come without a ready pod: all of them may be taken away before new ones are ready.
fn costs_requests(deployment: &Value) -> bool {
    if object::text(deployment, "/spec/strategy/type") == Some("Recreate") {
        return true;
    }
    let replicas = deployment
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let limit = |field: &str| deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
    let surge = share(limit("maxSurge"), replicas, true);
    let unavailable = share(limit("maxUnavailable"), replicas, false);
    // With neither allowed, the Deployment controller takes one pod away.
    let unavailable = if surge == 0 {
        unavailable.max(1)
    } else {
        unavailable
    };
    unavailable >= replicas
}

/// A number of pods, or a percentage of `replicas`; by default a quarter of them.
fn share(limit: Option<&Value>, replicas: i64, round_up: bool) -> i64 {
    let percentage = match limit {
        Some(Value::Number(number)) => return number.as_i64().unwrap_or_default(),
        Some(Value::String(text)) => text.trim_end_matches('%').parse().unwrap_or(0),
        _ => 25,
    };
    let hundredths: i64 = replicas.saturating_mul(percentage);
    if round_up {
        hundredths.saturating_add(99) / 100
    } else {
        hundredths / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rotation::Digest;

    #[test]
    fn a_restart_costs_requests_where_no_pod_may_be_left() {
        let rolling = |replicas: i64, surge: Value, unavailable: Value| {
            json!({"spec": {"replicas": replicas, "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            }}})
        };
        for (deployment, expected) in [
            (
                json!({"spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}),
                true,
            ),
            (json!({"spec": {}}), false),
            (rolling(1, json!("25%"), json!("25%")), false),
            (rolling(1, json!(0), json!(1)), true),
            (rolling(1, json!(1), json!(1)), true),
            (rolling(1, json!("0%"), json!("0%")), true),
            (rolling(2, json!(0), json!(1)), false),
            (rolling(2, json!(0), json!("100%")), true),
        ] {
            assert_eq!(costs_requests(&deployment), expected, "{deployment}");
        }
    }

    #[test]
    fn a_restart_is_noted_and_keeps_what_is_there() {
        for metadata in [
            json!({"annotations": {"theirs": "1"}}),
            json!({"labels": {}}),
            Value::Null,
        ] {
            let mut deployment = json!({
                "metadata": {"name": "d", "resourceVersion": "7"}, "spec": {"template": {"spec": {}}}
            });
            if !metadata.is_null() {
                deployment["spec"]["template"]["metadata"] = metadata.clone();
            }
            let leaf = Digest([7; 32]);
            let patch = restart_patch(&deployment, &leaf);
            json_patch::patch(&mut deployment, &patch).unwrap();
            assert_eq!(
                read_deployment(&deployment, false).restarted_for,
                Some(leaf),
                "{metadata}"
            );
            let theirs = deployment.pointer("/spec/template/metadata/annotations/theirs");
            assert_eq!(theirs, metadata.pointer("/annotations/theirs"));
        }
    }
}
