//! What cert-manager serves comes under Windlass, goes back, and comes for good.

use anyhow::Context;
use serde_json::json;
use windlass_object::ca_injectors::{CERT_MANAGER_CERTIFICATE, CERT_MANAGER_VERSION};

use super::{
    super::{foreign, traffic},
    steps::{KILLS, adopt, call, confirm, nothing_is_left, nothing_is_ours, undo},
    theirs::{CERTIFICATE, SECRET, TheirIssuer, Theirs, collection, serving},
};
use crate::{
    cainjector::Cainjector,
    request::text,
    sample::{self, NAMESPACE},
    steps::{MUTATING, PATIENCE, VALIDATING, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// What the bundle calls.
const OURS: [&str; 2] = ["sample-operator-service", "sample-operator-service-green"];

/// The versions that clients use.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(in super::super) async fn what_cert_manager_serves_is_adopted_and_given_back_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let theirs = Theirs::of_kubebuilder();
    let issuer = TheirIssuer::new(&theirs)?;
    let crd = foreign::crd(CERT_MANAGER_VERSION, "Certificate", "certificates", true);
    foreign::define(client, &crd).await?;
    theirs.install(client, &issuer).await?;
    let certificates = format!("/apis/{CERT_MANAGER_VERSION}/namespaces/{NAMESPACE}/certificates");
    let certificate = json!({"apiVersion": CERT_MANAGER_VERSION, "kind": "Certificate", "metadata": {"name": CERTIFICATE},
        "spec": {"secretName": SECRET, "issuerRef": {"name": "issuer"},
            "dnsNames": [format!("{}.{NAMESPACE}.svc", theirs.service)]}});
    succeed(client, "POST", &certificates, Some(&certificate)).await?;
    let _cainjector = Cainjector::start(cluster, &["--enable-certificates-data-source"]).await?;
    let _operator = cluster.operator.start()?;
    let source = format!("cert-manager/{CERTIFICATE}");
    let load = traffic::start(cluster, &VERSIONS).await?;
    load.at_least(100).await?;

    adopt(cluster, &source, &KILLS).await?;
    call(client, "mwidget.sample.windlass.dev", &OURS).await?;
    // Who was left over is served as before.
    let validating = format!("{VALIDATING}/vwidget.sample.windlass.dev");
    let mutating = format!("{MUTATING}/{}", theirs.mutating);
    let left_over = get(client, &mutating).await?.context("it was removed")?;
    anyhow::ensure!(
        text(&left_over, "/webhooks/0/clientConfig/service/name") == theirs.service
            && left_over["metadata"]["annotations"][CERT_MANAGER_CERTIFICATE].is_string(),
        "{left_over}"
    );
    load.at_least(200).await?;
    tracing::info!(
        requests = load.report().requests,
        failed = load.report().failed,
        "Adopted"
    );

    undo(cluster, &KILLS).await?;
    call(client, theirs.mutating, &[theirs.service]).await?;
    serving(client).await?;
    nothing_is_left(client).await?;
    let paths = [
        sample::DEFINITION.to_owned(),
        sample::DEPLOYMENT.to_owned(),
        validating.clone(),
        mutating.clone(),
    ];
    nothing_is_ours(client, &paths).await?;
    load.at_least(200).await?;
    tracing::info!(
        requests = load.report().requests,
        failed = load.report().failed,
        "Undone"
    );

    adopt(cluster, &source, &[]).await?;
    load.at_least(100).await?;
    confirm(cluster, &KILLS[..4]).await?;
    call(client, "mwidget.sample.windlass.dev", &OURS).await?;
    nothing_is_left(client).await?;
    for path in [
        mutating,
        format!("{}/{}", collection("Service"), theirs.service),
        format!("{certificates}/{CERTIFICATE}"),
    ] {
        until(&format!("{path} is gone"), PATIENCE, async || {
            let left = get(client, &path).await?;
            Ok(check(left.is_none(), || format!("{left:?}")))
        })
        .await?;
    }
    load.at_least(100).await?;
    traffic::finish_at(load, &VERSIONS).await?;
    Ok(())
}
