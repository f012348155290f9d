//! Deployments whose pods of two revisions cannot run beside each other.

use serde_json::Value;
use windlass_object::object;

/// Why the pods of a new revision of `deployment` cannot come up beside the old ones; `None` where they can.
pub fn exclusive_use(deployment: &Value) -> Option<String> {
    let pod_spec = deployment.pointer("/spec/template/spec")?;
    if pod_spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        return Some("its pods use the network of their node".to_owned());
    }
    let ports = object::items(pod_spec, "/containers")
        .iter()
        .flat_map(|container| object::items(container, "/ports"))
        .filter_map(|port| port.get("hostPort")?.as_i64());
    if let Some(port) = ports.into_iter().find(|port| *port != 0) {
        return Some(format!("its pods use port {port} of their node"));
    }
    let is_recreated = object::text(deployment, "/spec/strategy/type") == Some("Recreate");
    let claim = object::items(pod_spec, "/volumes")
        .iter()
        .find_map(|volume| object::text(volume, "/persistentVolumeClaim/claimName"));
    claim
        .filter(|_| is_recreated)
        .map(|claim| format!("its pods use the PersistentVolumeClaim {claim} one after the other"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_need_the_same_port_or_volume_exclude_each_other() {
        let deployment = |strategy: &str, spec: Value| json!({"spec": {"strategy": {"type": strategy}, "template": {"spec": spec}}});
        let ports =
            |port: u16| json!({"containers": [{"ports": [{"containerPort": 9443}, {"hostPort": port}]}]});
        let volumes = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]});
        for (strategy, spec, expected) in [
            ("RollingUpdate", json!({"hostNetwork": true}), Some("network")),
            ("RollingUpdate", ports(9443), Some("port 9443")),
            ("RollingUpdate", ports(0), None),
            ("Recreate", volumes.clone(), Some("PersistentVolumeClaim data")),
            ("RollingUpdate", volumes, None),
            ("Recreate", json!({"hostNetwork": false}), None),
        ] {
            let found = exclusive_use(&deployment(strategy, spec.clone()));
            assert_eq!(found.is_some(), expected.is_some(), "{spec}: {found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
