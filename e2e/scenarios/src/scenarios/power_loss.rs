//! One of several API servers loses power: its connections stay open without answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    sample,
    steps::{PATIENCE, check, succeed, until},
    test_cluster::TestCluster,
};

/// The maximum time until a target is repaired that is overwritten after the power loss.
const REPAIR: Duration = Duration::from_secs(60);

/// The JSON pointer to the trust bundle of a CRD.
const CA_BUNDLE: &str = "/spec/conversion/webhook/clientConfig/caBundle";

pub(super) async fn targets_are_repaired_after_an_api_server_loses_power(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (operator, forwarder) = cluster.forwarded(&cluster.operator).await?;
    let operator = operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let trusted = sample::trust_bundle(cluster).await?;
    forwarder.lose_power();
    let lost = Instant::now();
    let overwritten = json!([{"op": "remove", "path": CA_BUNDLE}]);
    succeed(&cluster.client, "PATCH", sample::DEFINITION, Some(&overwritten)).await?;
    until("the trust bundle is repaired", REPAIR, async || {
        let crd = sample::crd(cluster).await?;
        let bundle = crd.pointer(CA_BUNDLE).and_then(Value::as_str);
        Ok(check(bundle == Some(&trusted), || format!("{bundle:?}")))
    })
    .await?;
    tracing::info!(
        seconds = lost.elapsed().as_secs_f32(),
        "Repaired after an API server lost power"
    );
    sample::rotate(cluster, "ca").await?;
    until("the same process is the leader", PATIENCE, async || {
        Ok(check(operator.leads().await?, || {
            "it is not the leader".to_owned()
        }))
    })
    .await?;
    operator.stop().await
}
