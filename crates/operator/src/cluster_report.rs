//! What a report is about, read from the cluster.

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_report::{ReportedTarget, Subjects};
use windlass_trust::injection::{TargetKind, TargetKinds};

/// Reads what a report is about. Kinds of targets that may not be read are named in it; those that are not served have no
/// objects.
///
/// # Errors
///
/// When BundleDeployments or ServingCertificates cannot be listed, or the API server cannot be reached.
pub async fn gather(cluster: &Cluster, kinds_of_targets: &TargetKinds) -> Result<Subjects, RequestError> {
    let mut subjects = Subjects {
        bundle_deployments: typed(cluster, &kinds::BUNDLE_DEPLOYMENT).await?,
        serving_certificates: typed(cluster, &kinds::SERVING_CERTIFICATE).await?,
        ..Subjects::default()
    };
    for kind in kinds_of_targets.all() {
        match targets(cluster, kind).await {
            Ok(targets) => subjects.targets.extend(targets),
            Err(error @ RequestError::Refused { .. }) => subjects.unread.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(subjects)
}

/// Objects of a kind of ours. Those that are not what the schema says are left out: the API server lets nobody write such.
async fn typed<T: DeserializeOwned>(cluster: &Cluster, kind: &Kind) -> Result<Vec<T>, RequestError> {
    let read = |object: Value| serde_json::from_value(object).ok();
    cluster.list_as(kind, None, None, read).await
}

/// The targets of a kind, in the newest version that is served.
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
