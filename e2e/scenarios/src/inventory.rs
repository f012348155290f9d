//! The objects in a cluster that scenarios share: each scenario restores them.

use std::{collections::BTreeSet, time::Duration};

use kube::Client;
use serde_json::{Value, json};

use crate::{
    request::{self, text},
    steps::{self, CRDS, MUTATING, VALIDATING},
};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAMESPACES: &str = "/api/v1/namespaces";

/// The collections in which scenarios leave objects, in order of removal. An object in an added namespace is
/// deleted with its namespace.
const COLLECTIONS: &[&str] = &[
    VALIDATING,
    MUTATING,
    API_SERVICES,
    CRDS,
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/coordination.k8s.io/v1/leases",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    NAMESPACES,
    "/api/v1/nodes",
];

/// Objects that block the deletion of others. Webhooks without a server reject all changes, and a namespace
/// is deleted only when every API answers.
const OBSTACLES: [&str; 3] = [VALIDATING, MUTATING, API_SERVICES];

/// The field managers of the control plane, which creates its own objects at any time: a Lease at its start,
/// a ConfigMap with its CA in each namespace.
const CONTROL_PLANE: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// The timeout for removals: a real server needs about 10 seconds for a namespace.
const PATIENCE: Duration = Duration::from_secs(240);

/// The timeout of a watch that is expected to end earlier.
const WATCH: Duration = Duration::from_secs(10);

/// The paths of the objects in these collections.
#[derive(Clone, Debug)]
pub(crate) struct Inventory(BTreeSet<String>);

impl Inventory {
    /// Lists the objects that exist now.
    pub(crate) async fn take(client: &Client) -> anyhow::Result<Self> {
        let mut paths = BTreeSet::new();
        for collection in COLLECTIONS {
            for object in steps::list(client, collection).await? {
                paths.insert(path(collection, &object));
            }
        }
        Ok(Self(paths))
    }

    /// Deletes all other objects, and waits until they are gone. No operator may be running.
    pub(crate) async fn restore(&self, client: &Client) -> anyhow::Result<()> {
        steps::until("the cluster is as it was before", PATIENCE, async || {
            let mut left = Vec::new();
            for collection in COLLECTIONS {
                let added = self.added(client, collection).await?;
                for object in &added {
                    remove(client, collection, object).await?;
                    left.push(path(collection, object));
                }
                if !added.is_empty() && OBSTACLES.contains(collection) {
                    break;
                }
            }
            Ok(steps::check(left.is_empty(), || left.join(", ")))
        })
        .await
    }

    async fn added(&self, client: &Client, collection: &str) -> anyhow::Result<Vec<Value>> {
        let mut objects = steps::list(client, collection).await?;
        objects.retain(|object| self.is_added(collection, object));
        Ok(objects)
    }

    fn is_added(&self, collection: &str, object: &Value) -> bool {
        // The API server creates and deletes APIServices of its own kinds, which name no Service.
        let own = collection == API_SERVICES && object["spec"]["service"].is_null();
        !own && !self.is_left_alone(object) && !self.0.contains(&path(collection, object))
    }

    /// Whether a namespaced object is not deleted on its own: the control plane's, or in an added namespace.
    fn is_left_alone(&self, object: &Value) -> bool {
        let namespace = text(object, "/metadata/namespace");
        let is_added = !self.0.contains(&format!("{NAMESPACES}/{namespace}"));
        !namespace.is_empty() && (is_added || is_of_control_plane(object))
    }
}

fn is_of_control_plane(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    let is_its = |entry: &Value| CONTROL_PLANE.contains(&text(entry, "/manager"));
    managers.is_some_and(|managers| !managers.is_empty() && managers.iter().all(is_its))
}

fn path(collection: &str, object: &Value) -> String {
    let name = text(object, "/metadata/name");
    match (text(object, "/metadata/namespace"), collection.rsplit_once('/')) {
        ("", _) | (_, None) => format!("{collection}/{name}"),
        (namespace, Some((root, plural))) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
    }
}

/// Deletes an object, and removes its finalizers.
async fn remove(client: &Client, collection: &str, object: &Value) -> anyhow::Result<()> {
    match collection {
        CRDS if is_converting(object) => return stop_converting(client, object).await,
        CRDS => release(client, object).await?,
        NAMESPACES => end_pods(client, object).await?,
        _ => {}
    }
    if object["metadata"]["deletionTimestamp"].is_null() {
        attempt(client, "DELETE", &path(collection, object), None).await?;
    }
    Ok(())
}

fn is_converting(crd: &Value) -> bool {
    crd["spec"]["conversion"]["strategy"] == "Webhook"
}

/// Removes a conversion without a webhook server, and waits until the API server has torn down the storage
/// for it. The API server ends all watches of the kind when it does so, a second later (`tearDown` in
/// apiextensions-apiserver, `customresource_handler.go`). A deletion of a CRD's objects that uses the old
/// storage waits more than a minute for it.
async fn stop_converting(client: &Client, crd: &Value) -> anyhow::Result<()> {
    let Some(collection) = stored(crd) else {
        return Ok(());
    };
    let watch = format!("{collection}?watch=true&timeoutSeconds={}", WATCH.as_secs());
    let watch = request::watch(client, &watch).await;
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    attempt(client, "PATCH", &path(CRDS, crd), Some(&none)).await?;
    match watch {
        Ok(ended) => ended.await,
        Err(error) => {
            tracing::debug!(error = format!("{error:#}"), "There is no storage to be given up");
            Ok(())
        }
    }
}

/// The collection of a CRD's objects in the storage version.
fn stored(crd: &Value) -> Option<String> {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let stored = versions.into_iter().find(|version| version["storage"] == true)?;
    let (group, version) = (text(crd, "/spec/group"), text(stored, "/name"));
    Some(format!(
        "/apis/{group}/{version}/{}",
        text(crd, "/spec/names/plural")
    ))
}

/// Removes finalizers without a controller from the objects of a CRD.
async fn release(client: &Client, crd: &Value) -> anyhow::Result<()> {
    let Some(collection) = stored(crd) else {
        return Ok(());
    };
    let listed = request::send(client, "GET", &collection, None).await?;
    for object in listed.body["items"].as_array().into_iter().flatten() {
        if object["metadata"]["finalizers"].is_null() {
            continue;
        }
        let freed = json!({"metadata": {"finalizers": null}});
        attempt(client, "PATCH", &path(&collection, object), Some(&freed)).await?;
    }
    Ok(())
}

/// Deletes the pods of a namespace whose node has stopped, and the objects that would create new ones.
async fn end_pods(client: &Client, namespace: &Value) -> anyhow::Result<()> {
    let name = text(namespace, "/metadata/name");
    let deployments = format!("/apis/apps/v1/namespaces/{name}/deployments");
    attempt(client, "DELETE", &deployments, None).await?;
    let now = json!({"gracePeriodSeconds": 0});
    let pods = format!("/api/v1/namespaces/{name}/pods");
    attempt(client, "DELETE", &pods, Some(&now)).await
}

/// Sends a request that may be rejected: the caller checks the result.
async fn attempt(client: &Client, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<()> {
    let answer = request::send(client, method, path, body).await?;
    if answer.code >= 300 {
        tracing::debug!(method, path, %answer, "Rejected; the caller checks the result");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

    #[test]
    fn objects_that_appear_in_kept_namespaces_are_deleted() {
        let in_namespace = |namespace: &str, name: &str, managers: &[&str]| {
            let entries: Vec<_> = managers
                .iter()
                .map(|manager| json!({"manager": manager}))
                .collect();
            json!({"metadata": {"namespace": namespace, "name": name, "managedFields": entries}})
        };
        let before = in_namespace("kube-system", "before", &["unknown"]);
        let kept = json!({"metadata": {"name": "kube-system"}});
        let inventory = Inventory(BTreeSet::from([path(NAMESPACES, &kept), path(LEASES, &before)]));
        let leader = "kube-controller-manager";
        for (object, expected) in [
            (before.clone(), false),
            (in_namespace("kube-system", "added", &["cainjector"]), true),
            (in_namespace("kube-system", "added", &[]), true),
            (in_namespace("kube-system", leader, &[leader]), false),
            // The garbage collector also writes to objects of other clients.
            (in_namespace("kube-system", "added", &["olm", leader]), true),
            (in_namespace("added", "added", &["unknown"]), false),
        ] {
            assert_eq!(inventory.is_added(LEASES, &object), expected, "{object}");
        }
        assert!(!inventory.is_added(NAMESPACES, &kept));
        let added = json!({"metadata": {"name": "added", "managedFields": [{"manager": leader}]}});
        assert!(inventory.is_added(NAMESPACES, &added));
        assert_eq!(
            path(LEASES, &before),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/before"
        );
    }
}
