//! Windlass answers the annotations of cert-manager, which stops and starts.

use std::time::Duration;

use serde_json::json;
use windlass_object::{
    ca_injectors::CERT_MANAGER_SECRET,
    names::{INJECT, INJECT_CA_FROM},
};

use super::{
    super::{foreign_issuer::ForeignIssuer, injection},
    injectable::{Injectable, check_bundles, check_unchanged, create, wait_for_bundles},
    steps::{
        HOOK, ISSUER, certificates_of, expire_lease, publish_ca, trust_bundle, wait_for_events,
        wait_for_failures, writes,
    },
};
use crate::{
    cainjector::{self, Cainjector},
    test_cluster::TestCluster,
};

/// How long nothing may be written.
const QUIET: Duration = Duration::from_secs(4);

/// The message about targets that are left to cert-manager.
const AT_WORK: &str = "cert-manager is running";

pub(in super::super) async fn windlass_replaces_cert_manager_only_while_it_is_stopped(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let mut operator = cluster.operator.clone();
    operator
        .arguments
        .push("--answer-annotations-of=cert-manager".to_owned());
    let (operator, proxy) = cluster.proxied(&operator).await?;
    injection::create_certificate(cluster).await?;
    let (first, second, third) = (
        ForeignIssuer::new(1)?,
        ForeignIssuer::new(2)?,
        ForeignIssuer::new(3)?,
    );
    publish_ca(client, "POST", &first).await?;
    let cainjector = Cainjector::start(cluster, &[])?;
    let theirs = Injectable::of_each_kind("theirs", &json!({CERT_MANAGER_SECRET: ISSUER}));
    create(client, &theirs).await?;
    wait_for_bundles(client, &theirs, &certificates_of(&[&first]), cainjector::MANAGER).await?;
    publish_ca(client, "PUT", &second).await?;
    let united = certificates_of(&[&first, &second]);
    wait_for_bundles(client, &theirs, &united, cainjector::MANAGER).await?;

    let _operator = operator.start()?;
    wait_for_events(client, &theirs, AT_WORK).await?;
    check_unchanged(client, &theirs, QUIET).await?;
    anyhow::ensure!(writes(&proxy, &theirs) == 0, "{:?}", proxy.log());

    cainjector.crash().await?;
    expire_lease(client).await?;
    check_unchanged(client, &theirs, QUIET).await?;
    publish_ca(client, "PUT", &third).await?;
    let handed_over = certificates_of(&[&first, &second, &third]);
    wait_for_bundles(client, &theirs, &handed_over, INJECT).await?;
    anyhow::ensure!(writes(&proxy, &theirs) == theirs.len(), "{:?}", proxy.log());

    // A cert-manager without a Lease is detected because it reverts changes.
    let both = Injectable::of_each_kind(
        "both",
        &json!({INJECT_CA_FROM: HOOK, CERT_MANAGER_SECRET: ISSUER}),
    );
    create(client, &both).await?;
    let ours = trust_bundle(client).await?;
    wait_for_bundles(client, &both, &ours, INJECT).await?;
    let _cainjector = Cainjector::start(cluster, &["--leader-elect=false"])?;
    let united = ours.union(&certificates_of(&[&third])).cloned().collect();
    wait_for_bundles(client, &both, &united, cainjector::MANAGER).await?;
    wait_for_failures(client, &both, AT_WORK).await?;
    check_unchanged(client, &both, QUIET).await?;
    anyhow::ensure!(
        writes(&proxy, &both) == both.len(),
        "two writers: {:?}",
        proxy.log()
    );
    // If both want the same value, neither reverts the other.
    check_bundles(client, &theirs, &handed_over).await
}
