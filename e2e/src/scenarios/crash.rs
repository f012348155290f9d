//! The operator is killed at every write, and started again.
//!
//! Each life of the operator is allowed one write more than the last ones got done: it is cut off before the
//! next one, or after it was carried out and before it heard of that. So one install, and one rotation, goes
//! through every position there is.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{rotation::CERTIFICATE, traffic};
use crate::{
    bed::Bed,
    gate::{Cut, Gate},
    request::text,
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, get, install, ready, serving_certificates, succeed},
};

/// How long a life that makes no write may last: then it waits for something, and nothing is left to cut.
const LIFE: Duration = Duration::from_secs(4);

/// More lives than any install or rotation has writes.
const MOST_LIVES: usize = 400;

pub(super) async fn an_install_resumes_from_every_write(bed: &Bed) -> anyhow::Result<()> {
    bed.bundle("sample.v1")?;
    let object = steps::bundle_deployment("sample", "sample-system", "sample.v1");
    succeed(&bed.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
    let positions = killed_until(bed, async || {
        let deployed = get(&bed.client, &path)
            .await?
            .context("the BundleDeployment is gone")?;
        Ok(has_condition(&deployed, "Ready"))
    })
    .await?;
    tracing::info!(positions, "The install was cut at every write");
    let _operator = bed.operator.start()?;
    ready(&bed.client, "sample", PATIENCE).await?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(100).await;
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn a_ca_rotation_resumes_from_every_write(bed: &Bed) -> anyhow::Result<()> {
    let running = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    running.kill().await?;
    let path = format!("{}/{CERTIFICATE}", serving_certificates("sample-system"));
    let before = current_generation(&get(&bed.client, &path).await?.context("no ServingCertificate")?)?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    let patch = json!({"metadata": {"annotations": {"windlass.dev/rotate": "ca:crash"}}});
    succeed(&bed.client, "PATCH", &path, Some(&patch)).await?;
    let positions = killed_until(bed, async || {
        let certificate = get(&bed.client, &path)
            .await?
            .context("the ServingCertificate is gone")?;
        let rotated = current_generation(&certificate)? > before;
        Ok(rotated && text(&certificate, "/status/phase") == "Stable")
    })
    .await?;
    tracing::info!(positions, "The rotation was cut at every write");
    let _operator = bed.operator.start()?;
    bed.settled("sample-system", CERTIFICATE).await?;
    let after = current_generation(&get(&bed.client, &path).await?.context("no ServingCertificate")?)?;
    anyhow::ensure!(
        after == before + 1,
        "one rotation was asked for, the CA went from {before} to {after}"
    );
    load.at_least(100).await;
    traffic::finish(load).await?;
    Ok(())
}

/// Starts the operator again and again, cutting each life off at its first write, alternately before and after
/// it is carried out, until `done`. How many positions were cut.
async fn killed_until(bed: &Bed, done: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<usize> {
    let gate = Gate::open(bed.operator_client().await?).await?;
    let operator = bed
        .operator
        .with_kubeconfig(&bed.write("gate.kubeconfig", &gate.kubeconfig())?);
    let mut positions = 0;
    let mut allowed = 1;
    for life in 0..MOST_LIVES {
        // A life that is cut before its first write does nothing; the next one is cut after it.
        let (number, cut) = if life % 2 == 0 {
            (allowed, Cut::Before)
        } else {
            (allowed, Cut::After)
        };
        gate.cut_at(number, cut);
        let running = operator.start()?;
        let closed = tokio::time::timeout(LIFE, gate.closed()).await.is_ok();
        running.kill().await?;
        gate.reopen();
        if closed {
            positions += 1;
            // Where every life begins with the same write, a later one must be let through to get on.
            allowed = if gate.repeats() { allowed + 1 } else { 1 };
        } else if done().await? {
            return Ok(positions);
        }
    }
    anyhow::bail!(
        "not done after {positions} cuts; the last writes: {:?}",
        gate.log().iter().rev().take(5).collect::<Vec<_>>()
    )
}

fn has_condition(object: &Value, condition_type: &str) -> bool {
    object["status"]["conditions"]
        .as_array()
        .is_some_and(|conditions| {
            conditions
                .iter()
                .any(|condition| condition["type"] == condition_type && condition["status"] == "True")
        })
}

fn current_generation(certificate: &Value) -> anyhow::Result<i64> {
    certificate["status"]["ca"]["current"]["generation"]
        .as_i64()
        .context("no generation in the status")
}
