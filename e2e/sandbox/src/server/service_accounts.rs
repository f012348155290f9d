//! ServiceAccount admission of pods (`plugin/pkg/admission/serviceaccount`): mounts the token at the path
//! that client-go reads.

use serde_json::{Value, json};

use super::{api_server::ApiServer, kinds::ServedResource, metadata::random_suffix};

/// The mount path of the token.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The name prefix of token volumes.
const VOLUME: &str = "kube-api-access-";

/// How many seconds the token is valid: `WarnOnlyBoundTokenExpirationSeconds`.
const SECONDS: u32 = 3607;

/// Sets the ServiceAccount of a new pod, and mounts its token unless the pod or the ServiceAccount disables
/// that.
///
/// If the ServiceAccount is missing, the pod is created without a token; the real server rejects it.
pub(super) fn mount_token(server: &ApiServer, served: &ServedResource, namespace: &str, pod: &mut Value) {
    if served.kind != "Pod" || !served.group.is_empty() || !pod["spec"].is_object() {
        return;
    }
    if pod["spec"]["serviceAccountName"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        pod["spec"]["serviceAccountName"] = json!("default");
        pod["spec"]["serviceAccount"] = json!("default");
    }
    let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    let Some(account) = server.shared().stored("", "serviceaccounts", namespace, name) else {
        return;
    };
    let field = "automountServiceAccountToken";
    let asked = pod["spec"][field].as_bool().or(account[field].as_bool());
    if asked.unwrap_or(true) {
        mount(&mut pod["spec"], &random_suffix());
    }
}

fn mount(spec: &mut Value, suffix: &str) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let present = volumes
        .filter_map(|volume| volume["name"].as_str())
        .find(|name| name.starts_with(VOLUME))
        .map(ToOwned::to_owned);
    let is_present = present.is_some();
    let name = present.unwrap_or_else(|| format!("{VOLUME}{suffix}"));
    let mount = json!({"name": name, "readOnly": true, "mountPath": FOLDER});
    let mut mounted = false;
    for field in ["initContainers", "containers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
            if mounts.iter().all(|mount| mount["mountPath"] != FOLDER) {
                container["volumeMounts"] = mounts.into_iter().chain([mount.clone()]).collect();
                mounted = true;
            }
        }
    }
    if mounted && !is_present {
        let volume = json!({"name": name, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]}});
        let volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
        spec["volumes"] = volumes.into_iter().chain([volume]).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_gets_the_token_unless_something_else_is_mounted_there() {
        let own = json!([{"name": "own", "mountPath": FOLDER}]);
        let mut spec = json!({"initContainers": [{"name": "i"}],
            "containers": [{"name": "a", "volumeMounts": [{"name": "x", "mountPath": "/x"}]},
                           {"name": "b", "volumeMounts": own}]});
        mount(&mut spec, "abcde");
        let mounted = json!({"name": "kube-api-access-abcde", "readOnly": true, "mountPath": FOLDER});
        assert_eq!(spec["initContainers"][0]["volumeMounts"], json!([mounted]));
        assert_eq!(spec["containers"][0]["volumeMounts"][1], mounted);
        assert_eq!(spec["containers"][1]["volumeMounts"], own);
        assert_eq!(spec["volumes"][0]["name"], "kube-api-access-abcde");
        let once = spec.clone();
        mount(&mut spec, "other");
        assert_eq!(spec, once);
    }

    #[test]
    fn a_pod_gets_no_volume_if_all_containers_mount_something_there() {
        let mut spec =
            json!({"containers": [{"name": "b", "volumeMounts": [{"name": "own", "mountPath": FOLDER}]}]});
        let before = spec.clone();
        mount(&mut spec, "abcde");
        assert_eq!(spec, before);
    }
}
