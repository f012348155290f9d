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
    injectable::{Injectable, annotate, check_unchanged, create, remove_bundles, wait_for_bundles},
    steps::{
        HOOK, ISSUER, REMOVE, api_server_ca, certificates_of, publish_ca, trust_bundle, wait_for_events,
        wait_for_failures, writes,
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

pub(in super::super) async fn targets_that_also_request_cert_manager_have_one_writer(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    injection::create_certificate(cluster).await?;
    let (first, second) = (ForeignIssuer::new(1)?, ForeignIssuer::new(2)?);
    publish_ca(client, "POST", &first).await?;
    let _cainjector = Cainjector::start(cluster, &[])?;

    let annotations = json!({INJECT_CA_FROM: HOOK, CERT_MANAGER_SECRET: ISSUER});
    let both = Injectable::of_each_kind("both", &annotations);
    create(client, &both).await?;
    wait_for_bundles(client, &both, &certificates_of(&[&first]), cainjector::MANAGER).await?;
    wait_for_failures(client, &both, REMOVE).await?;
    let annotations = json!({INJECT_CA_FROM_SECRET: ISSUER, CERT_MANAGER_SECRET: ISSUER});
    let mut of_secret = Injectable::of_each_kind("secret", &annotations);
    of_secret.retain(|injectable| injectable.path().starts_with(VALIDATING));
    create(client, &of_secret).await?;
    wait_for_bundles(
        client,
        &of_secret,
        &certificates_of(&[&first]),
        cainjector::MANAGER,
    )
    .await?;
    wait_for_events(client, &of_secret, REMOVE).await?;
    check_unchanged(client, &both, QUIET).await?;
    anyhow::ensure!(writes(&proxy, &both) + writes(&proxy, &of_secret) == 0);

    annotate(client, &both, &json!({CERT_MANAGER_SECRET: null})).await?;
    let trust = trust_bundle(client).await?;
    wait_for_bundles(client, &both, &trust, INJECT).await?;
    wait_for_failures(client, &[], REMOVE).await?;
    publish_ca(client, "PUT", &second).await?;
    annotate(client, &both, &json!({"changed": "true"})).await?;
    check_unchanged(client, &both, QUIET).await?;
    anyhow::ensure!(writes(&proxy, &both) == both.len(), "{:?}", proxy.log());

    // cert-manager adds its CA to the existing bundle.
    annotate(
        client,
        &both,
        &json!({INJECT_CA_FROM: null, CERT_MANAGER_SECRET: ISSUER}),
    )
    .await?;
    let united = trust.union(&certificates_of(&[&second])).cloned().collect();
    wait_for_bundles(client, &both, &united, cainjector::MANAGER).await?;
    check_unchanged(client, &both, WITHDRAWN).await?;
    anyhow::ensure!(writes(&proxy, &both) == both.len(), "{:?}", proxy.log());
    Ok(())
}

pub(in super::super) async fn cert_manager_and_windlass_each_handle_their_own_targets(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    injection::create_certificate(cluster).await?;
    let (first, second) = (ForeignIssuer::new(1)?, ForeignIssuer::new(2)?);
    publish_ca(client, "POST", &first).await?;
    let kind = foreign::crd(CERT_MANAGER_VERSION, "Certificate", "certificates", true);
    foreign::define(&cluster.client, &kind).await?;
    let certificate = json!({
        "apiVersion": CERT_MANAGER_VERSION, "kind": "Certificate", "metadata": {"name": "issuer"},
        "spec": {"secretName": "issuer"},
    });
    let path = format!("/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates");
    succeed(client, "POST", &path, Some(&certificate)).await?;
    let _cainjector = Cainjector::start(cluster, &["--enable-certificates-data-source"])?;

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
    wait_for_bundles(client, &theirs, &certificates_of(&[&first]), cainjector::MANAGER).await?;
    wait_for_bundles(
        client,
        &of_api_server,
        &api_server_ca(client).await?,
        cainjector::MANAGER,
    )
    .await?;
    wait_for_bundles(client, &ours, &trust_bundle(client).await?, INJECT).await?;

    publish_ca(client, "PUT", &second).await?;
    let united = certificates_of(&[&first, &second]);
    wait_for_bundles(client, &theirs, &united, cainjector::MANAGER).await?;
    for injectables in [&ours, &theirs] {
        remove_bundles(client, injectables).await?;
    }
    wait_for_bundles(client, &ours, &trust_bundle(client).await?, INJECT).await?;
    wait_for_bundles(client, &theirs, &certificates_of(&[&second]), cainjector::MANAGER).await?;
    for injectables in [&ours, &theirs, &of_api_server] {
        check_unchanged(client, injectables, QUIET).await?;
    }
    anyhow::ensure!(writes(&proxy, &theirs) + writes(&proxy, &of_api_server) == 0);
    Ok(())
}
