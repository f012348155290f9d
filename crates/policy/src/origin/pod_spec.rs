//! The location of the pod spec in an object.

use serde_json::Value;
use windlass_object::object;

use crate::patch::Pointer;

/// Returns the pointer to the spec of a pod, or of the pod template.
pub(crate) fn pod_spec(subject: &Value) -> Option<Pointer> {
    let api_version = object::text(subject, "/apiVersion")?;
    let kind = object::text(subject, "/kind")?;
    let path: &[&str] = match (object::group_and_version(api_version).0, kind) {
        ("", "Pod") => &["spec"],
        ("", "ReplicationController")
        | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job") => &["spec", "template", "spec"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    };
    Some(Pointer::from_tokens(path.iter().copied()))
}
