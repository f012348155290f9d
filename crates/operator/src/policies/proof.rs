//! Proof that every ready endpoint can answer: it serves a trusted certificate, knows all policies in their
//! current generation, and answers a review that changes nothing.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::join_all;
use policy::api::POLICY_API_VERSION;
use serde_json::{Value, json};
use windlass_cluster::{
    endpoints::{self, Endpoint},
    kinds,
    prober::{TrustAnchors, WebhookAddress},
    telemetry::chain,
};
use windlass_object::{ObjectKey, object, secret_keys::CA_CERTIFICATES};

use super::{
    configuration::{ConfigurationKind, PORT, PolicyService},
    server::VERSION_PATH,
    snapshot::PolicySnapshot,
};
use crate::context::Context;

/// The CA certificates that API servers trust for the Service.
pub(super) struct ServingTrust {
    /// The value of `caBundle` in webhook configurations.
    pub(super) ca_bundle: String,
    anchors: TrustAnchors,
}

/// The timeout of the review, which costs an endpoint almost nothing.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the trust bundle from the Secret of the certificate.
///
/// # Errors
///
/// What is missing while the Secret has no trust bundle.
pub(super) fn serving_trust(context: &Context, secret: &ObjectKey) -> Result<ServingTrust, String> {
    let bundle = context
        .index
        .find(secret)
        .and_then(|secret| object::data(&secret, CA_CERTIFICATES));
    let Some(bundle) = bundle else {
        return Err(format!("waiting for a certificate in {secret}"));
    };
    let anchors = TrustAnchors::parse(&bundle).map_err(|error| format!("{secret}: {}", chain(&error)))?;
    Ok(ServingTrust {
        ca_bundle: STANDARD.encode(&bundle),
        anchors,
    })
}

/// Probes every ready endpoint.
///
/// # Errors
///
/// All problems, joined.
pub(super) async fn prove(
    context: &Context,
    policy_service: &PolicyService,
    trust: &ServingTrust,
    snapshot: &PolicySnapshot,
) -> Result<(), String> {
    let key = kinds::SERVICE.object(Some(&policy_service.namespace), policy_service.service);
    let Some(service) = context.index.find(&key) else {
        return Err(format!("waiting for {key}: apply manifests/policies.yaml"));
    };
    let ready = endpoints::ready(&context.index, &service, Some(PORT));
    if ready.is_empty() {
        return Err(format!("waiting for a ready endpoint of {key}"));
    }
    let probes = ready
        .iter()
        .map(|endpoint| probe(context, policy_service, trust, snapshot, endpoint));
    let problems: Vec<_> = join_all(probes)
        .await
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("; "))
    }
}

async fn probe(
    context: &Context,
    policy_service: &PolicyService,
    trust: &ServingTrust,
    snapshot: &PolicySnapshot,
    endpoint: &Endpoint,
) -> Result<(), String> {
    let result = check_answers(context, policy_service, trust, snapshot, endpoint).await;
    context.metrics.record_probe("policies", result.is_ok());
    result
}

async fn check_answers(
    context: &Context,
    policy_service: &PolicyService,
    trust: &ServingTrust,
    snapshot: &PolicySnapshot,
    Endpoint { address, .. }: &Endpoint,
) -> Result<(), String> {
    let at = |path: &str| WebhookAddress {
        server_name: format!("{}.{}.svc", policy_service.service, policy_service.namespace),
        path: path.to_owned(),
    };
    let prober = &context.prober;
    let version = prober
        .post(*address, &at(VERSION_PATH), &trust.anchors, &json!({}))
        .await;
    let version = version.map_err(|error| chain(&error))?;
    if version != snapshot.version() {
        return Err(format!("{address}: waiting for it to load all policies"));
    }
    for kind in ConfigurationKind::BOTH {
        let uid = format!("windlass-{address}-{}", kind.path());
        let review = review(&uid);
        let answer = prober
            .admit(
                *address,
                &at(kind.path()),
                &trust.anchors,
                &review,
                REVIEW_TIMEOUT,
            )
            .await
            .map_err(|error| chain(&error))?;
        let response = &answer["response"];
        if response["uid"] != uid || response["allowed"] != true {
            return Err(format!(
                "{address}: unexpected answer of {} to a test review: {response}",
                kind.path()
            ));
        }
    }
    Ok(())
}

/// Returns a review that must be allowed: the deletion of a policy that does not exist.
fn review(uid: &str) -> Value {
    let old = json!({
        "apiVersion": POLICY_API_VERSION, "kind": "ClusterValidatePolicy", "metadata": {"name": "windlass-proof"},
    });
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": uid, "operation": "DELETE", "name": "windlass-proof", "oldObject": old, "dryRun": true},
    })
}
