//! Common steps of scenarios: reads, writes and waits.

use std::{
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use windlass_object::names;

use crate::request::{self, RequestAnswer};

/// The default timeout of waits.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The interval between two observations.
const LOOK: Duration = Duration::from_millis(50);

/// The collection of BundleDeployments.
pub const BUNDLE_DEPLOYMENTS: &str = "/apis/windlass.dev/v1alpha1/bundledeployments";

/// The leader election Lease of the operator.
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/windlass-system/leases/windlass";

/// The leader election Lease of the certificate controllers.
pub const CERTIFICATES_LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/windlass-system/leases/windlass-certificates";

/// The leader election Lease of the policy controllers.
pub const POLICIES_LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/windlass-system/leases/windlass-policies";

/// The collection of CustomResourceDefinitions.
pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The collection of ValidatingWebhookConfigurations.
pub const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The collection of MutatingWebhookConfigurations.
pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// The collection of ServingCertificates of a namespace.
pub fn serving_certificates(namespace: &str) -> String {
    format!("/apis/windlass.dev/v1alpha1/namespaces/{namespace}/servingcertificates")
}

/// Reads the object at `path`; `None` if it does not exist.
///
/// # Errors
///
/// Fails on any other error of the API server.
pub async fn get(client: &Client, path: &str) -> anyhow::Result<Option<Value>> {
    let answer = request::send_patiently(client, "GET", path, None).await?;
    match answer.code {
        200 => Ok(Some(answer.body)),
        404 => Ok(None),
        _ => bail!("GET {path}: {answer}"),
    }
}

/// Lists the collection at `path`.
///
/// # Errors
///
/// Fails if the API server answers with an error.
pub async fn list(client: &Client, path: &str) -> anyhow::Result<Vec<Value>> {
    let answer = succeed(client, "GET", path, None).await?;
    Ok(answer.body["items"].as_array().cloned().unwrap_or_default())
}

/// Sends a request that must succeed.
///
/// # Errors
///
/// Fails if the API server answers with an error.
pub async fn succeed(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<RequestAnswer> {
    let answer = request::send_patiently(client, method, path, body).await?;
    if answer.code >= 300 {
        bail!("{method} {path}: {answer}");
    }
    Ok(answer)
}

/// Waits until `look` returns a value.
///
/// # Errors
///
/// Fails if `look` fails, or returns no value within `patience`; the error contains the last observation.
pub async fn until<T, F>(what: &str, patience: Duration, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Result<T, String>>>,
{
    let started = Instant::now();
    loop {
        match look().await.with_context(|| format!("waiting until {what}"))? {
            Ok(found) => return Ok(found),
            Err(seen) if started.elapsed() > patience => {
                bail!("not within {patience:?}: {what}; last seen: {seen}")
            }
            Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Turns a condition into an observation for [`until`]; `seen` describes the actual state.
///
/// # Errors
///
/// Fails if the condition does not hold.
pub fn check(holds: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(seen()) }
}

/// The number of seconds in an environment variable, or `usual`.
///
/// # Errors
///
/// Fails if the value is not a number.
pub fn duration_in(variable: &str, usual: Duration) -> anyhow::Result<Duration> {
    number_in(variable, usual.as_secs()).map(Duration::from_secs)
}

/// The number in an environment variable, or `usual`.
///
/// # Errors
///
/// Fails if the value is not a number.
pub fn number_in(variable: &str, usual: u64) -> anyhow::Result<u64> {
    match std::env::var(variable) {
        Ok(number) => number
            .parse()
            .with_context(|| format!("{variable} must be a number")),
        Err(_) => Ok(usual),
    }
}

/// Whether all pods of a Deployment have its template and are available.
pub fn is_rolled_out(deployment: &Value) -> bool {
    let count = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64);
    let desired = count("/spec/replicas");
    let is_out = ["replicas", "updatedReplicas", "availableReplicas"]
        .iter()
        .all(|field| count(&format!("/status/{field}")) == desired);
    desired.is_some() && is_out && count("/status/observedGeneration") >= count("/metadata/generation")
}

/// A BundleDeployment whose source is a folder below the operator's `--bundle-dir`.
pub fn bundle_deployment(name: &str, namespace: &str, directory: &str) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": name},
        "spec": {"namespace": namespace, "source": {"directory": {"path": directory}}},
    })
}

/// Creates a BundleDeployment and waits until it is ready.
///
/// # Errors
///
/// Fails on a timeout.
pub async fn install(
    client: &Client,
    name: &str,
    namespace: &str,
    directory: &Path,
) -> anyhow::Result<Value> {
    let directory = directory
        .file_name()
        .and_then(|name| name.to_str())
        .context("the bundle has no name")?;
    let object = bundle_deployment(name, namespace, directory);
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(client, name, PATIENCE).await
}

/// Sets another folder below the operator's `--bundle-dir` as the source of a BundleDeployment.
///
/// # Errors
///
/// Fails if the API server answers with an error.
pub async fn set_source(client: &Client, name: &str, directory: &str) -> anyhow::Result<()> {
    let patch = json!({"spec": {"source": {"directory": {"path": directory}}}});
    let path = format!("{BUNDLE_DEPLOYMENTS}/{name}");
    succeed(client, "PATCH", &path, Some(&patch)).await?;
    Ok(())
}

/// Waits until a BundleDeployment is ready at its current generation.
///
/// # Errors
///
/// Fails on a timeout; the error contains the conditions.
pub async fn ready(client: &Client, name: &str, patience: Duration) -> anyhow::Result<Value> {
    condition(
        client,
        &format!("{BUNDLE_DEPLOYMENTS}/{name}"),
        "Ready",
        "True",
        patience,
    )
    .await
}

/// Waits until an object has a condition with a status at its current generation.
///
/// # Errors
///
/// Fails on a timeout; the error contains the conditions.
pub async fn condition(
    client: &Client,
    path: &str,
    condition_type: &str,
    status: &str,
    patience: Duration,
) -> anyhow::Result<Value> {
    let what = format!("{path} has {condition_type}={status}");
    until(&what, patience, async || {
        let Some(object) = get(client, path).await? else {
            return Ok(Err("not found".to_owned()));
        };
        let met = current(&object, condition_type, status).is_some();
        Ok(if met { Ok(object) } else { Err(conditions(&object)) })
    })
    .await
}

/// The condition of an object with a type and a status at its current generation.
pub fn current<'a>(object: &'a Value, condition_type: &str, status: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| {
        condition["type"] == condition_type
            && condition["status"] == status
            && condition["observedGeneration"] == object["metadata"]["generation"]
    })
}

/// Whether a ServingCertificate is stable and all endpoints and targets are current.
pub fn is_settled(certificate: &Value) -> bool {
    certificate["status"]["phase"] == "Stable" && all_current(certificate)
}

/// Describes the conditions of an object.
pub fn conditions(object: &Value) -> String {
    let listed = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let words = listed.iter().map(|condition| {
        let text = |field| request::text(condition, field);
        format!(
            "{}={} {}: {}",
            text("/type"),
            text("/status"),
            text("/reason"),
            text("/message")
        )
    });
    match words.collect::<Vec<_>>() {
        words if words.is_empty() => "no conditions".to_owned(),
        words => words.join("; "),
    }
}

/// Deletes an object and waits until it is gone.
///
/// # Errors
///
/// Fails on a timeout.
pub async fn delete(client: &Client, path: &str) -> anyhow::Result<()> {
    succeed(client, "DELETE", path, None).await?;
    gone(client, path).await
}

/// Waits until an object is gone.
///
/// # Errors
///
/// Fails on a timeout; the error contains the conditions.
pub async fn gone(client: &Client, path: &str) -> anyhow::Result<()> {
    until(&format!("{path} is gone"), PATIENCE, async || {
        Ok(match get(client, path).await? {
            Some(object) => Err(conditions(&object)),
            None => Ok(()),
        })
    })
    .await
}

/// Waits until a webhook configuration has a trust bundle.
///
/// # Errors
///
/// Fails on a timeout; the error contains the configuration.
pub async fn has_trust_bundle(client: &Client, path: &str) -> anyhow::Result<()> {
    until(&format!("{path} has a trust bundle"), PATIENCE, async || {
        let configuration = get(client, path).await?.context("gone")?;
        let bundle = request::text(&configuration, "/webhooks/0/clientConfig/caBundle");
        Ok(check(!bundle.is_empty(), || configuration.to_string()))
    })
    .await
}

/// Requests a rotation (`leaf` or `ca`). Returns the request, which the status repeats when the rotation is
/// complete.
///
/// # Errors
///
/// Fails if there is no such ServingCertificate.
pub async fn request_rotation(
    client: &Client,
    namespace: &str,
    name: &str,
    what: &str,
) -> anyhow::Result<String> {
    let path = format!("{}/{name}", serving_certificates(namespace));
    // Each value is executed once, so every rotation needs a new value.
    let reason = format!("{what}:asked for at {}", Timestamp::now());
    let patch = json!({"metadata": {"annotations": {names::ROTATE: reason}}});
    succeed(client, "PATCH", &path, Some(&patch)).await?;
    Ok(reason)
}

/// Requests a rotation (`leaf` or `ca`) and waits until it is complete and the certificate has settled.
///
/// # Errors
///
/// Fails on a timeout.
pub async fn rotate(
    client: &Client,
    namespace: &str,
    name: &str,
    what: &str,
    patience: Duration,
) -> anyhow::Result<()> {
    rotate_amid_writes(client, namespace, name, what, patience).await?;
    let path = format!("{}/{name}", serving_certificates(namespace));
    until(&format!("{path} is settled"), patience, async || {
        let object = get(client, &path)
            .await?
            .context("the ServingCertificate is gone")?;
        Ok(check(is_settled(&object), || object["status"].to_string()))
    })
    .await
}

/// Requests a rotation (`leaf` or `ca`) and waits until it is complete, while other writers change targets:
/// the status reports this request, and the rotated part has changed.
///
/// # Errors
///
/// Fails on a timeout.
pub async fn rotate_amid_writes(
    client: &Client,
    namespace: &str,
    name: &str,
    what: &str,
    patience: Duration,
) -> anyhow::Result<()> {
    let path = format!("{}/{name}", serving_certificates(namespace));
    let before = get(client, &path)
        .await?
        .context("the ServingCertificate is gone")?;
    let old = rotated_part(client, &before, what).await?;
    let request = request_rotation(client, namespace, name, what).await?;
    until(&format!("{path} has rotated its {what}"), patience, async || {
        let object = get(client, &path)
            .await?
            .context("the ServingCertificate is gone")?;
        let done =
            object["status"]["rotated"] == *request && rotated_part(client, &object, what).await? != old;
        Ok(check(done, || object["status"].to_string()))
    })
    .await
}

/// The part that a rotation replaces: the certificate in the serving Secret, since leaves of the same second
/// expire together, or the generation of the signing CA.
async fn rotated_part(client: &Client, certificate: &Value, what: &str) -> anyhow::Result<Value> {
    if what != "leaf" {
        return Ok(certificate["status"]["ca"]["current"]["generation"].clone());
    }
    let namespace = request::text(certificate, "/metadata/namespace");
    let secret = request::text(certificate, "/spec/secretName");
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    let secret = get(client, &path).await?.unwrap_or_default();
    Ok(secret["data"]["tls.crt"].clone())
}

fn all_current(certificate: &Value) -> bool {
    let status = &certificate["status"];
    status["endpoints"]["ready"] == status["endpoints"]["current"]
        && status["targets"]["total"] == status["targets"]["current"]
}
