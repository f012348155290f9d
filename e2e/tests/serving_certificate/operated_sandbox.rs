//! A sandbox with the operator.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Parser;
use http::Request;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass::commands::run;
use windlass_cluster::{
    SystemClock,
    prober::{Prober, TrustAnchors},
};
use windlass_operator::Operator;
use windlass_sandbox::Sandbox;

use crate::server::Server;

pub(crate) const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/system/secrets";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/system/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/system/endpointslices";

/// The user name of the operator.
const OPERATOR: &str = "the-operator";

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct OperatedSandbox {
    sandbox: Sandbox,
    client: Client,
    _stop: DropGuard,
}

/// Dials the server repeatedly in the background.
pub(crate) struct DialLoop {
    stop: CancellationToken,
    task: JoinHandle<usize>,
}

impl OperatedSandbox {
    /// Starts a sandbox and the operator, with short delays.
    pub(crate) async fn start() -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let sandbox = Sandbox::start(windlass_sandbox::SandboxOptions::default())
            .await
            .unwrap();
        let client = client_of(&sandbox, "admin").await;
        let stop = CancellationToken::new();
        let operated = Self {
            client,
            _stop: stop.clone().drop_guard(),
            sandbox,
        };
        for crd in windlass_api::custom_resource_definitions() {
            operated.create(CRDS, &serde_json::to_value(crd).unwrap()).await;
        }
        for name in ["windlass-system", "system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            operated.create("/api/v1/namespaces", &namespace).await;
        }
        let arguments =
            run::Args::parse_from(["run", "--serve=false", "--time-scale=0.02", "--probe-timeout=1s"]);
        let mut config = config_of(&operated.sandbox, OPERATOR).await;
        config.default_retry = false;
        let operator = Client::try_from(config).unwrap();
        let options = arguments.options().unwrap();
        tokio::spawn(async move { Operator::new(operator, options).run(stop).await.unwrap() });
        operated
    }

    /// Creates a Service whose only endpoint is a server in this process.
    pub(crate) async fn serve(&self) {
        let server = Server::start(self.client.clone(), format!("{SECRETS}/hook-cert")).await;
        self.create(SERVICES, &service()).await;
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"namespace": "system", "name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "ports": [{"name": "https", "port": server.address.port()}],
            "endpoints": [{"addresses": [server.address.ip().to_string()], "conditions": {"ready": true}}],
        });
        self.create(SLICES, &slice).await;
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let (code, body) = send(&self.client, "GET", path, "application/json", None).await;
        (code == 200).then_some(body)
    }

    pub(crate) async fn create(&self, collection: &str, object: &Value) {
        let (code, body) = send(&self.client, "POST", collection, "application/json", Some(object)).await;
        assert_eq!(code, 201, "{collection}: {body}");
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        let kind = "application/json-patch+json";
        let (code, body) = send(&self.client, "PATCH", path, kind, Some(patch)).await;
        assert_eq!(code, 200, "{path}: {body}");
    }

    pub(crate) async fn delete(&self, path: &str) {
        let (code, body) = send(&self.client, "DELETE", path, "application/json", None).await;
        assert_eq!(code, 200, "{path}: {body}");
    }

    /// Returns a value of the serving Secret.
    pub(crate) async fn secret(&self, pointer: &str) -> Option<Value> {
        let secret = self.get(&format!("{SECRETS}/hook-cert")).await?;
        secret.pointer(pointer).cloned()
    }

    pub(crate) async fn rotate(&self, name: &str, request: &str) {
        let patch = json!({"metadata": {"annotations": {"windlass.dev/rotate": request}}});
        let path = format!("{}/{name}", certificates("system"));
        let kind = "application/merge-patch+json";
        let (code, body) = send(&self.client, "PATCH", &path, kind, Some(&patch)).await;
        assert_eq!(code, 200, "{body}");
    }

    /// Waits until a ServingCertificate is stable and ready, all of its targets are current, and `check`
    /// accepts its status.
    pub(crate) async fn wait_until_stable(&self, name: &str, check: impl Fn(&Value) -> bool) -> Value {
        let path = format!("{}/{name}", certificates("system"));
        let started = Instant::now();
        loop {
            let object = self.get(&path).await.unwrap();
            let status = &object["status"];
            let is_stable = status["phase"] == "Stable"
                && reason(&object, "Ready") == Some("Current")
                && status["endpoints"]["ready"] == status["endpoints"]["current"]
                && status["targets"]["total"] == status["targets"]["current"];
            if is_stable && check(status) {
                return object;
            }
            assert!(started.elapsed() < PATIENCE, "not stable in time: {status:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn eventually(&self, what: &str, mut check: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !check().await {
            assert!(started.elapsed() < PATIENCE, "timed out: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the operator has stopped writing.
    pub(crate) async fn wait_until_idle(&self) {
        let started = Instant::now();
        loop {
            let before = self.writes();
            tokio::time::sleep(Duration::from_secs(2)).await;
            let after = self.writes();
            if before.len() == after.len() {
                return;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "the operator keeps writing: {:#?}",
                &after[before.len()..]
            );
        }
    }

    /// Returns the writes of the operator so far, without renewals of its Lease.
    fn writes(&self) -> Vec<String> {
        let requests = self.sandbox.requests();
        let writes = requests.iter().filter(|request| {
            request.user == OPERATOR
                && request.resource != "leases"
                && ["create", "update", "patch", "delete"].contains(&request.verb)
        });
        writes
            .map(|write| format!("{} {} {}: {}", write.verb, write.resource, write.name, write.code))
            .collect()
    }

    /// Dials the server repeatedly, with the current trust bundle of each target.
    pub(crate) fn dial_through<const N: usize>(&self, targets: [(String, &'static str); N]) -> DialLoop {
        let (client, stop) = (self.client.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let prober = Prober {
                timeout: Duration::from_secs(5),
                clock: Arc::new(SystemClock),
            };
            let mut handshakes = 0;
            while !stopped.is_cancelled() {
                let (_, slices) = send(&client, "GET", SLICES, "application/json", None).await;
                let slice = &slices["items"][0];
                let address = slice["endpoints"][0]["addresses"][0].as_str().unwrap();
                let address = format!("{address}:{}", slice["ports"][0]["port"]);
                for (path, pointer) in &targets {
                    let (_, target) = send(&client, "GET", path, "application/json", None).await;
                    let bundle = target
                        .pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    let pem = decode(bundle);
                    let anchors = TrustAnchors::parse(&pem).unwrap();
                    let presented = prober
                        .handshake(address.parse().unwrap(), "hook.system.svc", &anchors)
                        .await
                        .unwrap();
                    assert_eq!(presented.rejection, None, "through {path}");
                    handshakes += 1;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            handshakes
        });
        DialLoop { stop, task }
    }
}

impl DialLoop {
    /// Stops dialing; panics if a handshake failed.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        let handshakes = self.task.await.unwrap();
        assert!(handshakes > 10, "only {handshakes} handshakes");
    }
}

/// Returns the path of the ServingCertificates in a namespace.
pub(crate) fn certificates(namespace: &str) -> String {
    format!("/apis/windlass.dev/v1alpha1/namespaces/{namespace}/servingcertificates")
}

pub(crate) fn certificate(name: &str, secret: &str) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate",
        "metadata": {"namespace": "system", "name": name},
        "spec": {"serviceName": "hook", "secretName": secret},
    })
}

pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "system", "name": "hook"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 9443}]},
    })
}

/// Returns a configuration that requests the trust bundle and matches no requests.
pub(crate) fn configuration(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": {"windlass.dev/inject-ca-from": "system/hook"}},
        "webhooks": [{
            "name": "one.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "system", "name": "hook", "path": "/validate"}},
            "rules": [{"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"]}],
        }],
    })
}

/// Returns a CRD whose conversion webhook is the Service.
pub(crate) fn crd() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "annotations": {"windlass.dev/inject-ca-from": "system/hook"}},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", true), version("v1beta1", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "system", "name": "hook", "path": "/convert"}},
            }},
        },
    })
}

/// Returns the reason of a condition.
pub(crate) fn reason<'a>(object: &'a Value, condition_type: &str) -> Option<&'a str> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let condition = conditions
        .iter()
        .find(|condition| condition["type"] == condition_type)?;
    condition["reason"].as_str()
}

pub(crate) fn decode(base64: &str) -> Vec<u8> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.decode(base64).unwrap()
}

/// Sends a request and returns the status code and the body of the response.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: Option<&Value>,
) -> (u16, Value) {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(kube::client::Body::from(body))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap()
        .to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn client_of(sandbox: &Sandbox, user: &str) -> Client {
    Client::try_from(config_of(sandbox, user).await).unwrap()
}

async fn config_of(sandbox: &Sandbox, user: &str) -> Config {
    let kubeconfig = sandbox.kubeconfig(user, &["system:masters"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap()
}
