//! Reads the objects of the page.

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_object::{ObjectKey, text::OneLine};
use windlass_report::{ReportedTarget, Subjects};
use windlass_trust::injection::{KINDS, TargetKind};

/// Reads the objects of a report. The report names kinds of targets that cannot be read and objects that do
/// not match their schema; kinds that are not served have no objects.
///
/// # Errors
///
/// If BundleDeployments or ServingCertificates cannot be listed, or the API server is not reached.
pub async fn gather(cluster: &Cluster) -> Result<Subjects, RequestError> {
    let mut subjects = Subjects::default();
    let deployments = cluster.list(&kinds::BUNDLE_DEPLOYMENT, None, None).await?;
    subjects.bundle_deployments = deserialize_all(deployments, &mut subjects.unread);
    let certificates = cluster.list(&kinds::SERVING_CERTIFICATE, None, None).await?;
    subjects.serving_certificates = deserialize_all(certificates, &mut subjects.unread);
    for kind in KINDS.iter() {
        match targets(cluster, kind).await {
            Ok(targets) => subjects.targets.extend(targets),
            Err(error @ RequestError::Refused { .. }) => subjects.unread.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(subjects)
}

/// Deserializes objects. Invalid ones are named in `unread`, so that one of them does not hide all others.
fn deserialize_all<T: DeserializeOwned>(objects: Vec<Value>, unread: &mut Vec<String>) -> Vec<T> {
    let typed = objects.into_iter().filter_map(|object| {
        let key = ObjectKey::from_object(&object)
            .map(|key| key.to_string())
            .unwrap_or_default();
        let read = serde_json::from_value(object);
        read.map_err(|error| unread.push(format!("{}: {error}", OneLine(&key))))
            .ok()
    });
    typed.collect()
}

/// Returns the targets of a kind, in the newest served version.
async fn targets(cluster: &Cluster, target: &TargetKind) -> Result<Vec<ReportedTarget>, RequestError> {
    for kind in Kind::versions_of(target) {
        let read = |object: Value| ReportedTarget::read(&object, target);
        match cluster.list_as(&kind, None, None, read).await {
            Err(RequestError::UnknownKind { .. }) => {}
            listed => return listed,
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::ServingCertificate;

    use super::*;

    #[test]
    fn an_unreadable_object_is_named_and_hides_no_other() {
        let certificate = |name: &str, spec: Value| {
            json!({
                "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate",
                "metadata": {"namespace": "a", "name": name}, "spec": spec,
            })
        };
        let good = certificate("good", json!({"serviceName": "hook", "secretName": "hook-cert"}));
        let mut unread = Vec::new();
        let read: Vec<ServingCertificate> =
            deserialize_all(vec![certificate("bad", json!(1)), good], &mut unread);
        assert_eq!(read.len(), 1, "{unread:?}");
        assert!(unread[0].starts_with("ServingCertificate a/bad: "), "{unread:?}");
    }
}
