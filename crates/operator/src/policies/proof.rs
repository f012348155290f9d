//! Proof that whoever would be asked can answer: each ready endpoint serves a trusted certificate, knows all policies in their
//! present generation, and answers a review of which nothing comes.

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
    configuration::{Called, ConfigurationKind, PORT},
    server::VERSION_PATH,
    snapshot::PolicySnapshot,
};
use crate::context::Context;

/// What whoever calls trusts.
pub(super) struct ServingTrust {
    /// As it is in webhook configurations.
    pub(super) ca_bundle: String,
    anchors: TrustAnchors,
}

/// How long an endpoint has for the review, which it does next to nothing for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The trust bundle in the Secret of the certificate.
///
/// # Errors
///
/// With what it takes until there is one.
pub(super) fn trust(context: &Context, secret: &ObjectKey) -> Result<ServingTrust, String> {
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

/// Asks every ready endpoint.
///
/// # Errors
///
/// With all that is wrong.
pub(super) async fn prove(
    context: &Context,
    called: &Called,
    trust: &ServingTrust,
    snapshot: &PolicySnapshot,
) -> Result<(), String> {
    let key = kinds::SERVICE.object(Some(&called.namespace), called.service);
    let Some(service) = context.index.find(&key) else {
        return Err(format!("waiting for {key}: apply manifests/policies.yaml"));
    };
    let ready = endpoints::ready(&context.index, &service, Some(PORT));
    if ready.is_empty() {
        return Err(format!("waiting for a ready endpoint of {key}"));
    }
    let asked = ready
        .iter()
        .map(|endpoint| ask(context, called, trust, snapshot, endpoint));
    let problems: Vec<_> = join_all(asked)
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

async fn ask(
    context: &Context,
    called: &Called,
    trust: &ServingTrust,
    snapshot: &PolicySnapshot,
    endpoint: &Endpoint,
) -> Result<(), String> {
    let answered = answers(context, called, trust, snapshot, endpoint).await;
    context.metrics.probed("policies", answered.is_ok());
    answered
}

async fn answers(
    context: &Context,
    called: &Called,
    trust: &ServingTrust,
    snapshot: &PolicySnapshot,
    Endpoint { address, .. }: &Endpoint,
) -> Result<(), String> {
    let at = |path: &str| WebhookAddress {
        server_name: format!("{}.{}.svc", called.service, called.namespace),
        path: path.to_owned(),
    };
    let prober = &context.prober;
    let version = prober
        .post(*address, &at(VERSION_PATH), &trust.anchors, &json!({}))
        .await;
    let version = version.map_err(|error| chain(&error))?;
    if version != snapshot.described() {
        return Err(format!("{address}: waiting until it knows all policies"));
    }
    for kind in ConfigurationKind::BOTH {
        let uid = format!("windlass-{address}-{}", kind.path());
        let review = review(&uid);
        let answer = prober
            .admit(*address, &at(kind.path()), &trust.anchors, &review, PATIENCE)
            .await
            .map_err(|error| chain(&error))?;
        let response = &answer["response"];
        if response["uid"] != uid || response["allowed"] != true {
            return Err(format!(
                "{address}: answered {} with {response} to a policy that is deleted",
                kind.path()
            ));
        }
    }
    Ok(())
}

/// A review of what nobody objects to: that a policy which does not exist is deleted.
fn review(uid: &str) -> Value {
    let old = json!({
        "apiVersion": POLICY_API_VERSION, "kind": "ClusterValidatePolicy", "metadata": {"name": "windlass-proof"},
    });
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": uid, "operation": "DELETE", "name": "windlass-proof", "oldObject": old, "dryRun": true},
    })
}
