//! A Helm release is adopted, given back, and adopted for good.

use serde_json::json;

use super::{
    super::{
        guard::replicas::{Replica, install_guard},
        traffic,
    },
    foreign_install::{
        ForeignInstall, InstallIssuer, SECRET, collection, wait_until_available, wait_until_served,
    },
    steps::{
        KILLS, OURS, VERSIONS, adopt, check_adoption_removed, check_called_services, check_not_owned,
        confirm, undo,
    },
};
use crate::{
    command::argument,
    helm,
    sample::{self, NAMESPACE},
    steps::{VALIDATING, get},
    test_cluster::TestCluster,
};

pub(in super::super) async fn a_helm_release_is_adopted_and_given_back_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let foreign = ForeignInstall::with_bundle_names();
    let issuer = InstallIssuer::new(&foreign)?;
    let mut objects = vec![issuer.secret()?];
    objects.extend(foreign.servers());
    objects.extend(foreign.callers(&issuer)?);
    let (first, second) = (cluster.path("chart-1"), cluster.path("chart-2"));
    helm::chart(&first, "1.0.0", &objects)?;
    let of_second: Vec<_> = objects
        .iter()
        .map(|object| {
            let mut object = object.clone();
            object["metadata"]["annotations"]["chart"] = json!("second");
            object
        })
        .collect();
    helm::chart(&second, "2.0.0", &of_second)?;
    let (first, second) = (argument(&first)?, argument(&second)?);
    helm::succeed(
        cluster,
        NAMESPACE,
        &["install", "widgets", first, "--create-namespace"],
    )
    .await?;
    wait_until_available(client).await?;
    wait_until_served(client).await?;
    install_guard(cluster).await?;
    let replica = Replica::start(cluster, "one").await?;
    let load = traffic::start(cluster, &VERSIONS).await?;
    load.at_least(100).await?;

    adopt(cluster, "helm/widgets", &KILLS[3..5]).await?;
    check_called_services(client, "mwidget.sample.windlass.dev", &OURS).await?;
    replica.join(cluster).await?;
    for arguments in [
        &["upgrade", "widgets", second][..],
        &["upgrade", "--install", "widgets", second],
        &["uninstall", "widgets"],
        &["rollback", "widgets"],
    ] {
        let said = helm::fail(cluster, NAMESPACE, arguments).await?;
        tracing::info!(said = said.trim(), "helm {}", arguments[0]);
    }
    check_called_services(client, "mwidget.sample.windlass.dev", &OURS).await?;
    load.at_least(200).await?;
    tracing::info!(
        requests = load.report().requests,
        failed = load.report().failed,
        "Adopted"
    );

    undo(cluster, &KILLS[3..5]).await?;
    check_called_services(client, "mwidget.sample.windlass.dev", &[foreign.service]).await?;
    wait_until_available(client).await?;
    check_adoption_removed(client).await?;
    let validating = format!("{VALIDATING}/vwidget.sample.windlass.dev");
    let service = format!("{}/{}", collection("Service"), foreign.service);
    let paths = [
        sample::DEFINITION.to_owned(),
        sample::DEPLOYMENT.to_owned(),
        validating.clone(),
        service,
    ];
    check_not_owned(client, &paths).await?;
    helm::succeed(cluster, NAMESPACE, &["upgrade", "widgets", second]).await?;
    for path in &paths {
        let object = get(client, path).await?.unwrap_or_default();
        anyhow::ensure!(
            object["metadata"]["annotations"]["chart"] == "second",
            "{path}: {}",
            object["metadata"]
        );
    }
    wait_until_available(client).await?;
    load.at_least(200).await?;
    tracing::info!(
        requests = load.report().requests,
        failed = load.report().failed,
        "Undone"
    );

    adopt(cluster, "helm/widgets", &[]).await?;
    load.at_least(100).await?;
    confirm(cluster, &[]).await?;
    check_called_services(client, "mwidget.sample.windlass.dev", &OURS).await?;
    check_adoption_removed(client).await?;
    let listed = helm::succeed(cluster, NAMESPACE, &["list", "--all", "--short"]).await?;
    anyhow::ensure!(listed.trim().is_empty(), "{listed}");
    let secret = format!("{}/{SECRET}", collection("Secret"));
    anyhow::ensure!(get(client, &secret).await?.is_none(), "{secret} exists");
    load.at_least(100).await?;
    traffic::finish_at(load, &VERSIONS).await?;
    Ok(())
}
