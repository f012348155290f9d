//! What is run and looked at in these scenarios.

use anyhow::Context;
use kube::Client;
use serde_json::Value;

use crate::{
    command::argument,
    request::text,
    sample::{self, NAMESPACE},
    steps::{BUNDLE_DEPLOYMENTS, MUTATING, VALIDATING, get},
    test_cluster::TestCluster,
};

/// For so long a run waits that is to be interrupted.
const INTERRUPTED: &str = "1s";

/// Adopts from `source`; `interruptions` runs before end wherever they have to wait.
pub(super) async fn adopt(
    cluster: &TestCluster,
    source: &str,
    interruptions: usize,
) -> anyhow::Result<String> {
    let bundle = sample::bundle("sample.v1");
    let install = [
        "install",
        argument(&bundle)?,
        "--namespace",
        NAMESPACE,
        "--name",
        "sample",
        "--adopt-from",
        source,
    ];
    for _ in 0..interruptions {
        let interrupted = [&install[..], &["--timeout", INTERRUPTED]].concat();
        cluster.command.run(&interrupted, |_| {}).await?;
    }
    cluster.command.succeed(&install).await
}

/// Undoes an adoption; `interruptions` runs before end wherever they have to wait.
pub(super) async fn undo(cluster: &TestCluster, interruptions: usize) -> anyhow::Result<()> {
    let undo = ["adoption", "undo", "sample"];
    for _ in 0..interruptions {
        let interrupted = [&undo[..], &["--timeout", INTERRUPTED]].concat();
        let output = cluster.command.run(&interrupted, |_| {}).await?;
        if output.succeeded {
            return Ok(());
        }
    }
    cluster.command.succeed(&undo).await?;
    Ok(())
}

/// Sees to it that what is adopted calls the bundle's Services, or is as others had it.
pub(super) async fn call(client: &Client, mutating: &str, services: &[&str]) -> anyhow::Result<()> {
    for (path, pointer) in [
        (
            sample::DEFINITION.to_owned(),
            "/spec/conversion/webhook/clientConfig/service/name",
        ),
        (
            format!("{VALIDATING}/vwidget.sample.windlass.dev"),
            "/webhooks/0/clientConfig/service/name",
        ),
        (
            format!("{MUTATING}/{mutating}"),
            "/webhooks/0/clientConfig/service/name",
        ),
    ] {
        let caller = get(client, &path)
            .await?
            .with_context(|| format!("{path} is gone"))?;
        let called = text(&caller, pointer);
        anyhow::ensure!(
            services.contains(&called),
            "{path} calls {called}, not one of {services:?}"
        );
    }
    Ok(())
}

/// Sees to it that nothing is left of the adoption, and that `kept` alone is as it was.
pub(super) async fn nothing_is_left(client: &Client) -> anyhow::Result<()> {
    for path in [
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/sample-operator-kept"),
        "/api/v1/namespaces/windlass-system/secrets/windlass-adoption-sample".to_owned(),
    ] {
        anyhow::ensure!(get(client, &path).await?.is_none(), "{path} is there");
    }
    Ok(())
}

/// Sees to it that Windlass has let go of everything.
pub(super) async fn nothing_is_ours(client: &Client, paths: &[String]) -> anyhow::Result<()> {
    let deployment = format!("{BUNDLE_DEPLOYMENTS}/sample");
    anyhow::ensure!(get(client, &deployment).await?.is_none(), "{deployment} is there");
    anyhow::ensure!(get(client, sample::SERVING_CERTIFICATE).await?.is_none());
    for path in paths {
        let object: Value = get(client, path)
            .await?
            .with_context(|| format!("{path} is gone"))?;
        let metadata = object["metadata"].to_string();
        anyhow::ensure!(
            !metadata.contains("windlass.dev/bundle-deployment")
                && !metadata.contains("windlass.dev/applied-as"),
            "{path}: {metadata}"
        );
    }
    Ok(())
}
