//! Windlass answers the annotations of cert-manager, which stops and starts.

use std::time::Duration;

use serde_json::json;
use windlass_object::{
    ca_injectors::CERT_MANAGER_SECRET,
    names::{INJECT, INJECT_CA_FROM},
};

use super::{
    super::{foreign_issuer::ForeignIssuer, injection},
    injectable::{Injectable, carry, create, stay, trust},
    steps::{HOOK, ISSUER, certificates_of, expire, failing, has_event, publish, trust_bundle, writes},
};
use crate::{
    cainjector::{self, Cainjector},
    test_cluster::TestCluster,
};

/// How long nothing may be written.
const QUIET: Duration = Duration::from_secs(4);

/// The message about targets that are left to cert-manager.
const AT_WORK: &str = "cert-manager is at work";

pub(in super::super) async fn windlass_answers_for_cert_manager_only_while_that_is_gone(
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
    publish(client, "POST", &first).await?;
    let cainjector = Cainjector::start(cluster, &[]).await?;
    let theirs = Injectable::of_each_kind("theirs", &json!({CERT_MANAGER_SECRET: ISSUER}));
    create(client, &theirs).await?;
    carry(client, &theirs, &certificates_of(&[&first]), cainjector::MANAGER).await?;
    publish(client, "PUT", &second).await?;
    let united = certificates_of(&[&first, &second]);
    carry(client, &theirs, &united, cainjector::MANAGER).await?;

    let _operator = operator.start()?;
    has_event(client, &theirs, AT_WORK).await?;
    stay(client, &theirs, QUIET).await?;
    anyhow::ensure!(writes(&proxy, &theirs) == 0, "{:?}", proxy.log());

    cainjector.crash().await?;
    expire(client).await?;
    stay(client, &theirs, QUIET).await?;
    publish(client, "PUT", &third).await?;
    let handed_over = certificates_of(&[&first, &second, &third]);
    carry(client, &theirs, &handed_over, INJECT).await?;
    anyhow::ensure!(writes(&proxy, &theirs) == theirs.len(), "{:?}", proxy.log());

    // A cert-manager without a Lease is detected because it reverts changes.
    let both = Injectable::of_each_kind(
        "both",
        &json!({INJECT_CA_FROM: HOOK, CERT_MANAGER_SECRET: ISSUER}),
    );
    create(client, &both).await?;
    let ours = trust_bundle(client).await?;
    carry(client, &both, &ours, INJECT).await?;
    let _cainjector = Cainjector::start(cluster, &["--leader-elect=false"]).await?;
    let united = ours.union(&certificates_of(&[&third])).cloned().collect();
    carry(client, &both, &united, cainjector::MANAGER).await?;
    failing(client, &both, AT_WORK).await?;
    stay(client, &both, QUIET).await?;
    anyhow::ensure!(
        writes(&proxy, &both) == both.len(),
        "two writers: {:?}",
        proxy.log()
    );
    // If both want the same value, neither reverts the other.
    trust(client, &theirs, &handed_over).await
}
