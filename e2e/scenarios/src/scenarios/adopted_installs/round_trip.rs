//! An existing install is adopted, given back, and adopted for good.

use anyhow::Context;

use super::{
    super::traffic,
    foreign_install::{ForeignInstall, collection, wait_until_available},
    steps::{
        KILLS, OURS, VERSIONS, adopt, check_adoption_removed, check_called_services, check_not_owned,
        confirm, undo,
    },
};
use crate::{
    request::text,
    sample,
    steps::{MUTATING, VALIDATING, get, gone},
    test_cluster::TestCluster,
};

/// Adopts the install from `source`, gives it back, and adopts it for good, under load. Then checks that its
/// Service and `other_objects` are deleted.
pub(super) async fn adopt_and_give_back(
    cluster: &TestCluster,
    foreign: &ForeignInstall,
    source: &str,
    other_objects: Option<String>,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let load = traffic::start(cluster, &VERSIONS).await?;
    load.at_least(100).await?;

    adopt(cluster, source, &KILLS).await?;
    check_called_services(client, "mwidget.sample.windlass.dev", &OURS).await?;
    // The remaining callers are served as before.
    let validating = format!("{VALIDATING}/vwidget.sample.windlass.dev");
    let mutating = format!("{MUTATING}/{}", foreign.mutating);
    let left_over = get(client, &mutating).await?.context("it was removed")?;
    let asks = foreign.annotations.as_object().into_iter().flatten();
    let mut asks = asks.map(|(name, value)| left_over["metadata"]["annotations"].get(name) == Some(value));
    anyhow::ensure!(
        text(&left_over, "/webhooks/0/clientConfig/service/name") == foreign.service && asks.all(|same| same),
        "{left_over}"
    );
    load.at_least(200).await?;
    tracing::info!(
        requests = load.report().requests,
        failed = load.report().failed,
        "Adopted"
    );

    undo(cluster, &KILLS).await?;
    check_called_services(client, foreign.mutating, &[foreign.service]).await?;
    wait_until_available(client).await?;
    check_adoption_removed(client).await?;
    let paths = [
        sample::DEFINITION.to_owned(),
        sample::DEPLOYMENT.to_owned(),
        validating.clone(),
        mutating.clone(),
    ];
    check_not_owned(client, &paths).await?;
    load.at_least(200).await?;
    tracing::info!(
        requests = load.report().requests,
        failed = load.report().failed,
        "Undone"
    );

    adopt(cluster, source, &[]).await?;
    load.at_least(100).await?;
    confirm(cluster, &KILLS[..4]).await?;
    check_called_services(client, "mwidget.sample.windlass.dev", &OURS).await?;
    check_adoption_removed(client).await?;
    let service = format!("{}/{}", collection("Service"), foreign.service);
    for path in [mutating, service].into_iter().chain(other_objects) {
        gone(client, &path).await?;
    }
    load.at_least(100).await?;
    traffic::finish_at(load, &VERSIONS).await?;
    Ok(())
}
