//! Runs the controllers pass by pass against a server.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{client::ControllerClient, deployments, garbage, replica_sets};
use crate::server::{ApiServer, Call, User};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

struct Cluster(ControllerClient);

impl Cluster {
    fn new() -> Self {
        let server = ApiServer::new(Duration::ZERO);
        Self(ControllerClient::new(server, User::master("test"), String::new()))
    }

    async fn send(&self, method: Method, path: &str, content_type: &str, body: &Value) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let call = Call {
            user: User::master("test"),
            method,
            path: path.to_owned(),
            query: query
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into_iter()
                .collect(),
            content_type: content_type.to_owned(),
            accept: "application/json".to_owned(),
            user_agent: "test".to_owned(),
            body: if body.is_null() {
                Vec::new()
            } else {
                body.to_string().into_bytes()
            },
        };
        let reply = self.0.server().handle(call).await;
        assert!(
            reply.is_ok(),
            "{path}: {:?}",
            reply.err().map(|error| error.message)
        );
    }

    async fn create(&self, collection: &str, object: &Value) {
        self.send(Method::POST, collection, "application/json", object)
            .await;
    }

    async fn merge(&self, path: &str, patch: &Value) {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch)
            .await;
    }

    async fn delete(&self, path: &str) {
        self.send(Method::DELETE, path, "application/json", &Value::Null)
            .await;
    }

    /// Runs some passes of every controller under test.
    async fn settle(&self) {
        for _ in 0..4 {
            deployments::pass(&self.0).await;
            replica_sets::pass(&self.0).await;
            garbage::pass(&self.0);
        }
    }

    /// Returns all ReplicaSets, sorted by revision.
    fn sets(&self) -> Vec<Value> {
        let revision =
            |set: &Value| set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].to_string();
        let mut sets: Vec<Value> = self.list("apps", "replicasets");
        sets.sort_by_key(revision);
        sets
    }

    fn pods(&self) -> Vec<Value> {
        self.list("", "pods")
    }

    fn list(&self, group: &str, resource: &str) -> Vec<Value> {
        let all = self.0.list(group, resource, Some("default"));
        all.iter().map(|object| object.as_ref().clone()).collect()
    }

    fn uid(&self, resource: &str) -> Value {
        self.list("apps", resource)[0]["metadata"]["uid"].clone()
    }
}

fn deployment(selector: &Value, labels: &Value, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator"}, "spec": {
        "replicas": 2, "minReadySeconds": 1, "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn owner(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"][0]["uid"]
}

#[tokio::test]
async fn only_the_newest_replica_set_follows_min_ready_seconds() {
    let cluster = Cluster::new();
    let app = json!({"app": "a"});
    cluster.create(DEPLOYMENTS, &deployment(&app, &app, "one")).await;
    cluster.settle().await;
    let path = format!("{DEPLOYMENTS}/operator");
    let container = json!([{"name": "c", "image": "two"}]);
    let changed = json!({"spec": {"minReadySeconds": 1000, "template": {"spec": {"containers": container}}}});
    cluster.merge(&path, &changed).await;
    cluster.settle().await;
    let seconds = || -> Vec<i64> {
        let sets = cluster.sets();
        sets.iter()
            .filter_map(|set| set["spec"]["minReadySeconds"].as_i64())
            .collect()
    };
    assert_eq!(seconds(), [1, 1000]);
    cluster
        .merge(&path, &json!({"spec": {"minReadySeconds": 5}}))
        .await;
    cluster.settle().await;
    assert_eq!(seconds(), [1, 5]);
    // Pausing stops the rollout, but not this update.
    cluster
        .merge(&path, &json!({"spec": {"minReadySeconds": 7, "paused": true}}))
        .await;
    cluster.settle().await;
    assert_eq!(seconds(), [1, 7]);
}

#[tokio::test]
async fn orphans_keep_running_and_are_adopted_by_a_deployment_with_a_matching_selector() {
    let cluster = Cluster::new();
    let app = json!({"app": "a"});
    cluster.create(DEPLOYMENTS, &deployment(&app, &app, "one")).await;
    cluster.settle().await;
    let pods = cluster.pods();
    assert_eq!(pods.len(), 2);
    cluster
        .delete(&format!("{DEPLOYMENTS}/operator?propagationPolicy=Orphan"))
        .await;
    cluster.settle().await;
    assert_eq!(cluster.list("apps", "deployments"), [] as [Value; 0]);
    let sets = cluster.sets();
    assert_eq!((sets.len(), owner(&sets[0])), (1, &Value::Null));
    assert_eq!(cluster.pods(), pods);

    let other = json!({"app": "a", "tier": "webhook"});
    cluster
        .create(DEPLOYMENTS, &deployment(&other, &other, "one"))
        .await;
    cluster.settle().await;
    assert_eq!(cluster.sets().len(), 2);
    assert!(
        cluster.sets().iter().any(|set| owner(set).is_null()),
        "the selector requires more labels"
    );
    assert!(cluster.pods().len() > 2);

    cluster.delete(&format!("{DEPLOYMENTS}/operator")).await;
    cluster.settle().await;
    assert_eq!(cluster.pods(), pods);
    cluster.create(DEPLOYMENTS, &deployment(&app, &app, "one")).await;
    cluster.settle().await;
    let (sets, uid) = (cluster.sets(), cluster.uid("deployments"));
    assert_eq!((sets.len(), owner(&sets[0])), (1, &uid));
    assert_eq!(cluster.pods(), pods);
}

#[tokio::test]
async fn a_replica_set_adopts_matching_pods_and_releases_relabelled_ones() {
    let cluster = Cluster::new();
    let app = json!({"app": "a"});
    let template =
        json!({"metadata": {"labels": app}, "spec": {"containers": [{"name": "c", "image": "one"}]}});
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!("lonely");
    cluster.create("/api/v1/namespaces/default/pods", &pod).await;
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"},
        "spec": {"replicas": 1, "selector": {"matchLabels": app}, "template": template}});
    cluster.create(REPLICA_SETS, &set).await;
    cluster.settle().await;
    let uid = cluster.uid("replicasets");
    let pods = cluster.pods();
    assert_eq!((pods.len(), owner(&pods[0])), (1, &uid));

    cluster
        .merge(
            "/api/v1/namespaces/default/pods/lonely",
            &json!({"metadata": {"labels": {"app": "b"}}}),
        )
        .await;
    cluster.settle().await;
    let owners: Vec<Value> = cluster.pods().iter().map(|pod| owner(pod).clone()).collect();
    assert_eq!(owners.iter().filter(|owner| **owner == uid).count(), 1);
    assert_eq!(owners.iter().filter(|owner| owner.is_null()).count(), 1);
}
