//! The Deployments of Windlass.

use serde_json::Value;
use windlass_object::{ObjectKey, object};

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// Judges a Deployment of Windlass; `tag` is the image tag of this version.
pub fn windlass_deployment(deployment: &Value, tag: &str) -> Vec<DoctorFinding> {
    let Some(key) = ObjectKey::from_object(deployment) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let image = object::text(deployment, "/spec/template/spec/containers/0/image").unwrap_or_default();
    let named = image.split('@').next().unwrap_or_default();
    let last = named.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, other)) if other != tag => {
            let message = format!(
                "runs {image}, but this command has version {tag}: use the command of the running version, or upgrade (docs/install.md)"
            );
            findings.push(DoctorCheck::OtherVersion.warning(&key, message));
        }
        Some(_) => {
            findings.push(
                DoctorCheck::OtherVersion.info(&key, format!("runs {tag}, the version of this command")),
            );
        }
        None => {
            let message = format!("runs {image}, which names no version: check that it is {tag}");
            findings.push(DoctorCheck::OtherVersion.info(&key, message));
        }
    }
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64);
    let wanted = number("/spec/replicas").unwrap_or(1);
    let ready = number("/status/readyReplicas").unwrap_or(0);
    let check = DoctorCheck::OperatorNotReady;
    let pods = "check its pods (kubectl describe, kubectl logs)";
    if wanted == 0 {
        findings.push(check.warning(&key, "not running: it is scaled to 0; scale it to 2"));
    } else if ready == 0 {
        findings.push(check.error(&key, format!("not running: no pod is ready; {pods}")));
    } else if ready < wanted {
        let message = format!("{ready} of {wanted} pods are ready: {pods}");
        findings.push(check.warning(&key, message));
    }
    findings
}

/// Finds a Deployment of Windlass in another namespace.
pub fn second_windlass(deployment: &Value, namespace: &str) -> Option<DoctorFinding> {
    let key = ObjectKey::from_object(deployment)?;
    let elsewhere = key.namespace.as_deref() != Some(namespace);
    elsewhere.then(|| {
        let message = format!(
            "is another Windlass besides the one in namespace {namespace}: Windlass must be installed only once per cluster, because both write the same \
             objects; remove one, or name its namespace with --operator-namespace"
        );
        DoctorCheck::SecondWindlass.error(key, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::DoctorSeverity::{self, Error, Info, Warning};

    fn deployment(image: &str, replicas: i64, ready: i64) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "windlass-system", "name": "windlass"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}]}}},
            "status": {"readyReplicas": ready},
        })
    }

    #[test]
    fn image_tags_and_ready_pods_are_checked() {
        for (image, replicas, ready, expected) in [
            ("ghcr.io/a/windlass:v1", 2, 2, &[Info][..]),
            ("registry:5000/windlass", 2, 2, &[Info]),
            ("windlass:v1@sha256:abc", 2, 2, &[Info]),
            ("windlass@sha256:abc", 2, 2, &[Info]),
            ("ghcr.io/a/windlass:v0", 2, 2, &[Warning]),
            ("ghcr.io/a/windlass:v1", 2, 1, &[Info, Warning]),
            ("ghcr.io/a/windlass:v1", 2, 0, &[Info, Error]),
            ("ghcr.io/a/windlass:v1", 0, 0, &[Info, Warning]),
        ] {
            let found = windlass_deployment(&deployment(image, replicas, ready), "v1");
            let found: Vec<DoctorSeverity> = found.iter().map(|finding| finding.severity).collect();
            assert_eq!(found, expected, "{image} {ready}/{replicas}");
        }
        let one = deployment("windlass:v1", 2, 2);
        assert!(second_windlass(&one, "windlass-system").is_none());
        assert_eq!(second_windlass(&one, "other").unwrap().severity, Error);
    }
}
