//! An existing install is adopted, given back, and adopted for good.

use anyhow::Context;

use super::{
    super::traffic,
    steps::{KILLS, OURS, VERSIONS, adopt, call, confirm, nothing_is_left, nothing_is_ours, undo},
    theirs::{Theirs, collection, serving},
};
use crate::{
    request::text,
    sample,
    steps::{MUTATING, VALIDATING, get, gone},
    test_cluster::TestCluster,
};

/// Adopts the install from `source`, gives it back, and adopts it for good, under load. Then checks that its
/// Service and `theirs_too` are deleted.
pub(super) async fn there_and_back(
    cluster: &TestCluster,
    theirs: &Theirs,
    source: &str,
    theirs_too: Option<String>,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let load = traffic::start(cluster, &VERSIONS).await?;
    load.at_least(100).await?;

    adopt(cluster, source, &KILLS).await?;
    call(client, "mwidget.sample.windlass.dev", &OURS).await?;
    // The remaining callers are served as before.
    let validating = format!("{VALIDATING}/vwidget.sample.windlass.dev");
    let mutating = format!("{MUTATING}/{}", theirs.mutating);
    let left_over = get(client, &mutating).await?.context("it was removed")?;
    let asks = theirs.annotations.as_object().into_iter().flatten();
    let mut asks = asks.map(|(name, value)| left_over["metadata"]["annotations"].get(name) == Some(value));
    anyhow::ensure!(
        text(&left_over, "/webhooks/0/clientConfig/service/name") == theirs.service && asks.all(|same| same),
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

    adopt(cluster, source, &[]).await?;
    load.at_least(100).await?;
    confirm(cluster, &KILLS[..4]).await?;
    call(client, "mwidget.sample.windlass.dev", &OURS).await?;
    nothing_is_left(client).await?;
    let service = format!("{}/{}", collection("Service"), theirs.service);
    for path in [mutating, service].into_iter().chain(theirs_too) {
        gone(client, &path).await?;
    }
    load.at_least(100).await?;
    traffic::finish_at(load, &VERSIONS).await?;
    Ok(())
}
