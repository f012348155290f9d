//! Targets with annotations of cert-manager, of Windlass, or both.

use std::time::Duration;

use serde_json::json;
use windlass_object::{
    ca_injectors::{
        CERT_MANAGER_API_SERVER, CERT_MANAGER_CERTIFICATE, CERT_MANAGER_SECRET, CERT_MANAGER_VERSION,
    },
    names::{INJECT, INJECT_CA_FROM, INJECT_CA_FROM_SECRET},
};

use super::{
    super::{
        foreign,
        foreign_issuer::ForeignIssuer,
        injection::{self, NAMESPACE},
    },
    injectable::{Injectable, annotate, carry, create, empty, stay},
    steps::{
        HOOK, ISSUER, REMOVE, certificates_of, failing, has_event, publish, published, trust_bundle, writes,
    },
};
use crate::{
    cainjector::{self, Cainjector},
    steps::{VALIDATING, succeed},
    test_cluster::TestCluster,
};

/// How long nothing may be written.
const QUIET: Duration = Duration::from_secs(4);

/// The same, where Windlass waits before it removes a CA bundle.
const WITHDRAWN: Duration = Duration::from_secs(12);

pub(in super::super) async fn who_asks_cert_manager_too_has_one_writer(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    injection::create_certificate(cluster).await?;
    let (first, second) = (ForeignIssuer::new(1)?, ForeignIssuer::new(2)?);
    publish(client, "POST", &first).await?;
    let _cainjector = Cainjector::start(cluster, &[]).await?;

    let annotations = json!({INJECT_CA_FROM: HOOK, CERT_MANAGER_SECRET: ISSUER});
    let both = Injectable::of_each_kind("both", &annotations);
    create(client, &both).await?;
    carry(client, &both, &certificates_of(&[&first]), cainjector::MANAGER).await?;
    failing(client, &both, REMOVE).await?;
    let annotations = json!({INJECT_CA_FROM_SECRET: ISSUER, CERT_MANAGER_SECRET: ISSUER});
    let mut of_secret = Injectable::of_each_kind("secret", &annotations);
    of_secret.retain(|injectable| injectable.path().starts_with(VALIDATING));
    create(client, &of_secret).await?;
    carry(
        client,
        &of_secret,
        &certificates_of(&[&first]),
        cainjector::MANAGER,
    )
    .await?;
    has_event(client, &of_secret, REMOVE).await?;
    stay(client, &both, QUIET).await?;
    anyhow::ensure!(writes(&proxy, &both) + writes(&proxy, &of_secret) == 0);

    annotate(client, &both, &json!({CERT_MANAGER_SECRET: null})).await?;
    let trust = trust_bundle(client).await?;
    carry(client, &both, &trust, INJECT).await?;
    failing(client, &[], REMOVE).await?;
    publish(client, "PUT", &second).await?;
    annotate(client, &both, &json!({"changed": "true"})).await?;
    stay(client, &both, QUIET).await?;
    anyhow::ensure!(writes(&proxy, &both) == both.len(), "{:?}", proxy.log());

    // cert-manager adds its CA to the existing bundle.
    annotate(
        client,
        &both,
        &json!({INJECT_CA_FROM: null, CERT_MANAGER_SECRET: ISSUER}),
    )
    .await?;
    let united = trust.union(&certificates_of(&[&second])).cloned().collect();
    carry(client, &both, &united, cainjector::MANAGER).await?;
    stay(client, &both, WITHDRAWN).await?;
    anyhow::ensure!(writes(&proxy, &both) == both.len(), "{:?}", proxy.log());
    Ok(())
}

pub(in super::super) async fn cert_manager_and_windlass_each_answer_who_asks_them(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    injection::create_certificate(cluster).await?;
    let (first, second) = (ForeignIssuer::new(1)?, ForeignIssuer::new(2)?);
    publish(client, "POST", &first).await?;
    let kind = foreign::crd(CERT_MANAGER_VERSION, "Certificate", "certificates", true);
    foreign::define(&cluster.client, &kind).await?;
    let certificate = json!({
        "apiVersion": CERT_MANAGER_VERSION, "kind": "Certificate", "metadata": {"name": "issuer"},
        "spec": {"secretName": "issuer"},
    });
    let path = format!("/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates");
    succeed(client, "POST", &path, Some(&certificate)).await?;
    let _cainjector = Cainjector::start(cluster, &["--enable-certificates-data-source"]).await?;

    let ours = Injectable::of_each_kind("ours", &json!({INJECT_CA_FROM: HOOK}));
    let mut theirs = Injectable::of_each_kind("fromcertificate", &json!({CERT_MANAGER_CERTIFICATE: ISSUER}));
    theirs.extend(Injectable::of_each_kind(
        "fromsecret",
        &json!({CERT_MANAGER_SECRET: ISSUER}),
    ));
    let of_api_server = Injectable::of_each_kind("fromapiserver", &json!({CERT_MANAGER_API_SERVER: "true"}));
    for injectables in [&ours, &theirs, &of_api_server] {
        create(client, injectables).await?;
    }
    carry(client, &theirs, &certificates_of(&[&first]), cainjector::MANAGER).await?;
    carry(
        client,
        &of_api_server,
        &published(client).await?,
        cainjector::MANAGER,
    )
    .await?;
    carry(client, &ours, &trust_bundle(client).await?, INJECT).await?;

    publish(client, "PUT", &second).await?;
    let united = certificates_of(&[&first, &second]);
    carry(client, &theirs, &united, cainjector::MANAGER).await?;
    for injectables in [&ours, &theirs] {
        empty(client, injectables).await?;
    }
    carry(client, &ours, &trust_bundle(client).await?, INJECT).await?;
    carry(client, &theirs, &certificates_of(&[&second]), cainjector::MANAGER).await?;
    for injectables in [&ours, &theirs, &of_api_server] {
        stay(client, injectables, QUIET).await?;
    }
    anyhow::ensure!(writes(&proxy, &theirs) + writes(&proxy, &of_api_server) == 0);
    Ok(())
}
