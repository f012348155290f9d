//! The Deployments, StatefulSets and DaemonSets that own pods.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tracing::warn;
use windlass_cluster::{Cluster, Kind, kinds, telemetry::chain};
use windlass_object::ObjectKey;

use super::service_pods::{ServicePod, controller};

/// Kinds that restart their pods when the pod template changes.
const KINDS: [Kind; 3] = [kinds::DEPLOYMENT, kinds::STATEFUL_SET, kinds::DAEMON_SET];

/// A workload, and the names of its pods.
pub(super) type Workload = (Value, BTreeSet<String>);

/// Reads the workloads that own `pods`. A workload that cannot be read is omitted: it is not restarted, and
/// an alarm names its pods.
pub(super) async fn read<'a>(
    cluster: &Cluster,
    pods: impl Iterator<Item = &'a ServicePod>,
) -> BTreeMap<ObjectKey, Workload> {
    let mut owners: BTreeMap<ObjectKey, BTreeSet<String>> = BTreeMap::new();
    for pod in pods {
        if let Some(owner) = &pod.controller {
            owners.entry(owner.clone()).or_default().insert(pod.name.clone());
        }
    }
    let mut workloads: BTreeMap<ObjectKey, Workload> = BTreeMap::new();
    for (mut owner, pods) in owners {
        if Kind::from_key(&owner) == kinds::REPLICA_SET {
            let set = find(cluster, &owner).await;
            match set.as_ref().and_then(controller) {
                Some(deployment) => owner = deployment,
                None => continue,
            }
        }
        if !KINDS.contains(&Kind::from_key(&owner)) {
            continue;
        }
        if let Some((_, known)) = workloads.get_mut(&owner) {
            known.extend(pods);
        } else if let Some(workload) = find(cluster, &owner).await {
            workloads.insert(owner, (workload, pods));
        }
    }
    workloads
}

async fn find(cluster: &Cluster, key: &ObjectKey) -> Option<Value> {
    match cluster.read(key).await {
        Ok(found) => found,
        Err(error) => {
            warn!(object = %key, error = chain(&error), "Cannot read the owner of a pod");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response, StatusCode};
    use kube::{Client, client::Body};
    use serde_json::json;
    use std::time::Duration;
    use tower::{BoxError, service_fn};

    use super::*;

    fn owned(kind: &str, name: &str, owner: Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"namespace": "n", "name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "no controller"}, owner,
            ]},
        })
    }

    fn owner(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true})
    }

    /// An API server with a ReplicaSet `a` of a Deployment, one without owner, and every other requested
    /// object except `gone`.
    async fn answer(request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let path = request.uri().path().to_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        let resource = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
        let (code, body) = match name {
            "v1" => {
                let resources = [
                    resource("deployments", "Deployment"),
                    resource("replicasets", "ReplicaSet"),
                    resource("statefulsets", "StatefulSet"),
                    resource("daemonsets", "DaemonSet"),
                ];
                (StatusCode::OK, json!({ "resources": resources }))
            }
            "a" | "b" => (
                StatusCode::OK,
                owned("ReplicaSet", name, owner("Deployment", "d")),
            ),
            "orphan" => (StatusCode::OK, owned("ReplicaSet", name, json!({}))),
            "gone" => (StatusCode::NOT_FOUND, json!({"kind": "Status", "code": 404})),
            _ => (StatusCode::OK, json!({"metadata": {"name": name}})),
        };
        Ok(Response::builder()
            .status(code)
            .body(Body::from(body.to_string().into_bytes()))?)
    }

    #[tokio::test]
    async fn a_pod_resolves_to_the_workload_that_owns_it() {
        let cluster = Cluster::new(Client::new(service_fn(answer), "default"), Duration::from_secs(5));
        let pod = |name: &str, owner: Option<Value>| ServicePod {
            name: name.to_owned(),
            created: None,
            controller: owner.and_then(|owner| controller(&owned("Pod", name, owner))),
        };
        let pods = [
            pod("d-1", Some(owner("ReplicaSet", "a"))),
            pod("d-2", Some(owner("ReplicaSet", "b"))),
            pod("s-0", Some(owner("StatefulSet", "s"))),
            pod("s-1", Some(owner("StatefulSet", "s"))),
            pod("e", Some(owner("DaemonSet", "gone"))),
            pod("f", Some(owner("ReplicaSet", "orphan"))),
            pod("g", Some(owner("Job", "j"))),
            pod("h", None),
        ];
        let read = read(&cluster, pods.iter()).await;
        let found: Vec<_> = read
            .iter()
            .map(|(key, (_, pods))| {
                (
                    key.to_string(),
                    pods.iter().map(String::as_str).collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("Deployment n/d".to_owned(), vec!["d-1", "d-2"]),
                ("StatefulSet n/s".to_owned(), vec!["s-0", "s-1"]),
            ]
        );
    }
}
