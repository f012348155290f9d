//! The page of `windlass report`, served in the cluster from its own manifests.

use http::{Request, StatusCode};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::installation;
use crate::{
    cluster, request,
    steps::{self, PATIENCE, check, get, list, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

/// The pods that serve the page.
const PODS: &str = "/api/v1/namespaces/windlass-system/pods?labelSelector=app.kubernetes.io/name=windlass-ui";

/// The Secret with their serving certificate.
const SECRET: &str = "/api/v1/namespaces/windlass-system/secrets/windlass-ui-cert";

const ACCOUNTS: &str = "/api/v1/namespaces/windlass-system/serviceaccounts";

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// The page requires a token and permission. With both, every pod shows it, even while its certificate is
/// rotated.
pub(super) async fn the_page_is_shown_only_to_authorized_users(cluster: &TestCluster) -> anyhow::Result<()> {
    installation::install(cluster, &manifests::image()).await?;
    installation::install_sample(cluster).await?;
    let deployments = installation::roll_out(cluster, manifests::ui_objects()).await?;
    anyhow::ensure!(deployments == 1, "{deployments} Deployments");

    let account = json!({"metadata": {"name": "reader"}});
    succeed(&cluster.client, "POST", ACCOUNTS, Some(&account)).await?;
    let token_request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = format!("{ACCOUNTS}/reader/token");
    let token = succeed(&cluster.client, "POST", &path, Some(&token_request)).await?;
    let token = request::text(&token.body, "/status/token").to_owned();

    for (token, expected, words) in [
        (None, 401, "kubectl create token"),
        (Some("stranger"), 401, "does not know this token"),
        (
            Some(&*token),
            403,
            "system:serviceaccount:windlass-system:reader is not allowed to get /ui",
        ),
    ] {
        for (pod, page) in pages(cluster, token).await? {
            let (code, body) = fetch_page(&page).await?;
            anyhow::ensure!(code == expected && body.contains(words), "{pod}: {code}: {body}");
        }
    }

    let binding = json!({
        "metadata": {"name": "windlass-ui-viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "windlass-ui-viewer"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "windlass-system", "name": "reader"}],
    });
    succeed(&cluster.client, "POST", BINDINGS, Some(&binding)).await?;
    let shown = pages(cluster, Some(&token)).await?;
    anyhow::ensure!(shown.len() == 2, "{} pods", shown.len());
    for (pod, page) in &shown {
        until(&format!("{pod} shows the page"), PATIENCE, async || {
            let (code, body) = fetch_page(page).await?;
            let is_whole = [
                "sample",
                "windlass-system/windlass-ui",
                "ValidatingWebhookConfiguration",
            ]
            .iter()
            .all(|name| body.contains(name));
            Ok(check(code == 200 && is_whole, || format!("{code}: {body:.2000}")))
        })
        .await?;
        let (_, body) = fetch_page(page).await?;
        for hidden in ["PRIVATE KEY", &token, "Not read:"] {
            anyhow::ensure!(!body.contains(hidden), "{pod} shows {hidden}");
        }
    }
    rotate_under_load(cluster, &token).await?;
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass-ui";
    let role = get(&cluster.client, role).await?.unwrap_or_default();
    let rules = role["rules"].to_string();
    anyhow::ensure!(!rules.contains("secrets") && !rules.contains('*'), "{rules}");
    cluster.command.succeed(&["uninstall", "sample"]).await?;
    Ok(())
}

/// Rotates the CA of the page, and checks that the page is served all the time.
async fn rotate_under_load(cluster: &TestCluster, token: &str) -> anyhow::Result<()> {
    let before = get(&cluster.client, SECRET).await?.unwrap_or_default();
    let certificate = format!("{}/windlass-ui", serving_certificates("windlass-system"));
    let rotating = cluster
        .command
        .succeed(&["rotate", "windlass-system/windlass-ui", "--ca", "--wait"]);
    let looking = async {
        loop {
            for (pod, page) in pages(cluster, Some(token)).await? {
                let (code, body) = fetch_page(&page).await?;
                anyhow::ensure!(code == 200, "{pod}: {code}: {body}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        rotated = rotating => rotated.map(|_| ())?,
        looked = looking => return looked,
    }
    let after = get(&cluster.client, SECRET).await?.unwrap_or_default();
    let live = get(&cluster.client, &certificate).await?.unwrap_or_default();
    anyhow::ensure!(
        before["data"]["tls.crt"] != after["data"]["tls.crt"] && steps::is_settled(&live),
        "{}",
        steps::conditions(&live)
    );
    Ok(())
}

/// Returns a client for the page of each ready pod, which verifies its name and CA.
async fn pages(cluster: &TestCluster, token: Option<&str>) -> anyhow::Result<Vec<(String, Client)>> {
    let secret = get(&cluster.client, SECRET).await?.unwrap_or_default();
    let mut pages = Vec::new();
    let pods = list(&cluster.client, PODS).await?;
    for pod in pods.iter().filter(|pod| is_ready(pod)) {
        let address = request::text(pod, "/status/podIP");
        let kubeconfig = kubeconfig(address, &secret["data"]["ca.crt"], token);
        let client = cluster::client(&kubeconfig.to_string()).await?;
        pages.push((request::text(pod, "/metadata/name").to_owned(), client));
    }
    Ok(pages)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    pod["metadata"]["deletionTimestamp"].is_null() && ready.any(|condition| condition["status"] == "True")
}

fn kubeconfig(address: &str, ca: &Value, token: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "page",
        "contexts": [{"name": "page", "context": {"cluster": "page", "user": "reader"}}],
        "clusters": [{"name": "page", "cluster": {
            "server": format!("https://{address}:9443"),
            "certificate-authority-data": ca,
            "tls-server-name": "windlass-ui.windlass-system.svc",
        }}],
        "users": [{"name": "reader", "user": token.map_or_else(|| json!({}), |token| json!({"token": token}))}],
    })
}

async fn fetch_page(page: &Client) -> anyhow::Result<(StatusCode, String)> {
    let request = Request::get("/ui").body(Body::empty())?;
    let response = page.send(request).await?;
    let code = response.status();
    let body = response.into_body().collect_bytes().await?;
    Ok((code, String::from_utf8_lossy(&body).into_owned()))
}
