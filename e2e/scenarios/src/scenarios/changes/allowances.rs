//! Checks that the called pods have the rights of their release at every moment. No component enforces
//! NetworkPolicies here, and the sample operator sends no requests, so the checks read both.

use std::{collections::BTreeMap, time::Duration};

use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{request::text, sample, steps, test_cluster::TestCluster};

/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(100);

const PODS: &str = "/api/v1/namespaces/sample-system/pods";
const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/sample-system/networkpolicies";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const BINDING: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/sample-system/rolebindings/sample-operator-reader";

/// Checks repeatedly.
pub(super) struct Allowances {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<AllowanceReport>>,
}

/// The result of the checks.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowanceReport {
    pub(super) looks: usize,
    /// What a pod lacked although it was called before and after.
    pub(super) lacking: Vec<String>,
}

impl Allowances {
    /// Starts the checks for an installed bundle.
    pub(super) fn start(cluster: &TestCluster) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(check_repeatedly(cluster.client.clone(), stop.clone()));
        Self { stop, task }
    }

    /// Stops the checks.
    pub(super) async fn finish(self) -> anyhow::Result<AllowanceReport> {
        self.stop.cancel();
        self.task.await?
    }
}

async fn check_repeatedly(client: Client, stop: CancellationToken) -> anyhow::Result<AllowanceReport> {
    let mut seen = AllowanceReport::default();
    let has_role = steps::get(&client, BINDING).await?.is_some();
    while !stop.is_cancelled() {
        let before = called_pods(&client).await?;
        let policies = steps::list(&client, POLICIES).await?;
        let reads_secrets = !has_role || may_read_secrets(&client).await?;
        let after = called_pods(&client).await?;
        for (name, pod) in before.iter().filter(|(name, _)| after.contains_key(*name)) {
            let image = text(pod, "/spec/containers/0/image");
            if image.ends_with(":v1") && !reads_secrets {
                seen.lacking
                    .push(format!("{name} of {image} may not read Secrets"));
            }
            let port = &pod["spec"]["containers"][0]["ports"][0]["containerPort"];
            if !is_reachable(&policies, pod, port) {
                seen.lacking.push(format!(
                    "no NetworkPolicy lets API servers in to {name} at {port}"
                ));
            }
        }
        seen.looks += 1;
        tokio::time::sleep(LOOK).await;
    }
    Ok(seen)
}

/// The pods behind the Service of the conversion, by name.
async fn called_pods(client: &Client) -> anyhow::Result<BTreeMap<String, Value>> {
    let crd = steps::get(client, sample::DEFINITION).await?.unwrap_or_default();
    let service = text(&crd, "/spec/conversion/webhook/clientConfig/service/name");
    let slices = steps::list(
        client,
        &format!(
            "/apis/discovery.k8s.io/v1/namespaces/sample-system/endpointslices?labelSelector=kubernetes.io/service-name={service}"
        ),
    )
    .await?;
    let endpoints = slices
        .iter()
        .flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let ready: Vec<&str> = endpoints
        .filter(|endpoint| endpoint["conditions"]["ready"] != false)
        .map(|endpoint| text(endpoint, "/targetRef/name"))
        .collect();
    let pods = steps::list(client, PODS).await?.into_iter();
    Ok(pods
        .map(|pod| (text(&pod, "/metadata/name").to_owned(), pod))
        .filter(|(name, _)| ready.contains(&name.as_str()))
        .collect())
}

async fn may_read_secrets(client: &Client) -> anyhow::Result<bool> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "system:serviceaccount:sample-system:sample-operator",
        "resourceAttributes": {"namespace": "sample-system", "verb": "get", "resource": "secrets"}}});
    let answer = steps::succeed(client, "POST", REVIEWS, Some(&review)).await?;
    Ok(answer.body["status"]["allowed"] == true)
}

/// Whether a pod can be reached at a port: no policy selects it, or one of those that do has a rule with the port.
fn is_reachable(policies: &[Value], pod: &Value, port: &Value) -> bool {
    let selects = |policy: &Value| {
        let labels = policy["spec"]["podSelector"]["matchLabels"].as_object();
        labels.is_none_or(|labels| {
            let has = |(key, value): (&String, &Value)| pod["metadata"]["labels"][key] == *value;
            labels.iter().all(has)
        })
    };
    let allows = |policy: &Value| {
        let rules = policy["spec"]["ingress"].as_array().into_iter().flatten();
        rules
            .flat_map(|rule| rule["ports"].as_array().into_iter().flatten())
            .any(|allowed| allowed["port"] == *port)
    };
    let mut selecting = policies.iter().filter(|policy| selects(policy)).peekable();
    selecting.peek().is_none() || selecting.any(allows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_reachable_by_any_selecting_policy_or_without_one() {
        let pod = json!({"metadata": {"labels": {"app": "a"}}});
        let policy = |app: &str, port: u16| {
            json!({"spec": {"podSelector": {"matchLabels": {"app": app}},
                "ingress": [{"ports": [{"protocol": "TCP", "port": port}]}]}})
        };
        for (policies, expected) in [
            (vec![], true),
            (vec![policy("b", 1)], true),
            (vec![policy("a", 1)], false),
            (vec![policy("a", 1), policy("a", 9443)], true),
        ] {
            assert_eq!(
                is_reachable(&policies, &pod, &json!(9443)),
                expected,
                "{policies:?}"
            );
        }
    }
}
