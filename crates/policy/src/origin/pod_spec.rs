//! Where the pods are that an object makes.

use serde_json::Value;
use windlass_object::object;

use crate::patch::Pointer;

/// The spec of an object's pods, if it is a pod or makes some.
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
