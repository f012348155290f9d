//! Steps and waits of these scenarios.

use std::collections::BTreeSet;

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use windlass_object::{
    ca_injectors::{CERT_MANAGER_CERTIFICATE_NAME, CERT_MANAGER_CONSENT},
    names::ALLOW_DIRECT_INJECTION,
};

use super::{
    super::{
        foreign::{certificates, certificates_of_bundle},
        foreign_issuer::{ForeignIssuer, pem},
        injection::NAMESPACE,
    },
    injectable::Injectable,
};
use crate::{
    cainjector,
    proxy::Proxy,
    request::text,
    steps::{PATIENCE, check, get, list, serving_certificates, succeed, until},
};

/// The Secret and Certificate of cert-manager, and the source of Windlass.
pub(super) const ISSUER: &str = "by-hand/issuer";
pub(super) const HOOK: &str = "by-hand/hook";

/// The message for objects with both annotations.
pub(super) const REMOVE: &str = "remove the annotation cert-manager.io/inject-ca-from-secret";

/// Writes the Secret with cert-manager's CA.
pub(super) async fn publish_ca(client: &Client, method: &str, issuer: &ForeignIssuer) -> anyhow::Result<()> {
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let path = match method {
        "POST" => secrets,
        _ => format!("{secrets}/issuer"),
    };
    let annotations = json!({
        CERT_MANAGER_CERTIFICATE_NAME: "issuer", CERT_MANAGER_CONSENT: "true",
        ALLOW_DIRECT_INJECTION: "true",
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "issuer", "annotations": annotations},
        "data": {"ca.crt": STANDARD.encode(pem(&[issuer]))},
    });
    succeed(client, method, &path, Some(&secret)).await?;
    Ok(())
}

pub(super) fn certificates_of(issuers: &[&ForeignIssuer]) -> BTreeSet<String> {
    certificates(pem(issuers).as_bytes())
}

/// The trust bundle that Windlass publishes for the Service.
pub(super) async fn trust_bundle(client: &Client) -> anyhow::Result<BTreeSet<String>> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/hook-cert");
    let secret = get(client, &path).await?.context("no Secret")?;
    Ok(certificates_of_bundle(text(&secret, "/data/ca.crt")))
}

/// The CA of the API server, as the cluster publishes it.
pub(super) async fn api_server_ca(client: &Client) -> anyhow::Result<BTreeSet<String>> {
    let path = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt";
    let config_map = get(client, path).await?.context("no ConfigMap")?;
    Ok(certificates(text(&config_map, "/data/ca.crt").as_bytes()))
}

/// The number of the operator's writes to these objects.
pub(super) fn writes(proxy: &Proxy, injectables: &[Injectable]) -> usize {
    let log = proxy.log();
    let is_theirs = |line: &&String| {
        injectables
            .iter()
            .any(|one| line.split_once(' ').is_some_and(|(_, path)| path == one.path()))
    };
    log.iter().filter(is_theirs).count()
}

/// Waits until the ServingCertificate reports exactly these objects.
pub(super) async fn wait_for_failures(
    client: &Client,
    injectables: &[Injectable],
    what: &str,
) -> anyhow::Result<()> {
    let path = format!("{}/hook", serving_certificates(NAMESPACE));
    until(
        &format!("the ServingCertificate says: {what}"),
        PATIENCE,
        async || {
            let certificate = get(client, &path).await?.unwrap_or_default();
            let failing = &certificate["status"]["targets"]["failing"];
            let failing: &[Value] = failing.as_array().map(Vec::as_slice).unwrap_or_default();
            let is_named = |injectable: &Injectable| {
                failing.iter().any(|target| {
                    text(target, "/name") == injectable.name() && text(target, "/message").contains(what)
                })
            };
            let is_done = failing.len() == injectables.len() && injectables.iter().all(is_named);
            Ok(check(is_done, || certificate["status"].to_string()))
        },
    )
    .await
}

/// Waits until an event on each object has this message.
pub(super) async fn wait_for_events(
    client: &Client,
    injectables: &[Injectable],
    what: &str,
) -> anyhow::Result<()> {
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    until(&format!("events say: {what}"), PATIENCE, async || {
        let events = list(client, path).await?;
        let is_told = |injectable: &Injectable| {
            events.iter().any(|event| {
                text(event, "/regarding/name") == injectable.name() && text(event, "/note").contains(what)
            })
        };
        Ok(check(injectables.iter().all(is_told), || {
            json!(events).to_string()
        }))
    })
    .await
}

/// Lets the Lease expire immediately.
pub(super) async fn expire_lease(client: &Client) -> anyhow::Result<()> {
    let past = Timestamp::now() - SignedDuration::from_mins(10);
    let patch = json!({"spec": {"renewTime": format!("{past:.6}")}});
    succeed(client, "PATCH", cainjector::LEASE, Some(&patch)).await?;
    Ok(())
}
