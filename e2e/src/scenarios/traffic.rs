//! Traffic as scenarios use it.

use std::time::Duration;

use crate::{
    bed::Bed,
    load::{Load, Report},
    resource::{Expectation, Resource},
    steps::succeed,
};

/// The namespace that traffic goes to.
pub(super) const NAMESPACE: &str = "traffic";

/// Workers that send requests side by side.
const WORKERS: usize = 4;

/// How long each worker waits between two requests: about 100 requests a second together.
const PAUSE: Duration = Duration::from_millis(30);

/// Sends requests to widgets at `versions` until stopped, through all webhooks of the sample.
pub(super) async fn start(bed: &Bed, versions: &[&str]) -> anyhow::Result<Load> {
    start_expecting(bed, versions, Expectation::Admitted).await
}

/// Sends requests to widgets at `versions` until stopped.
pub(super) async fn start_expecting(
    bed: &Bed,
    versions: &[&str],
    expectation: Expectation,
) -> anyhow::Result<Load> {
    start_in(bed, NAMESPACE, versions, expectation).await
}

/// Sends requests to widgets of a namespace at `versions` until stopped.
pub(super) async fn start_in(
    bed: &Bed,
    name: &str,
    versions: &[&str],
    expectation: Expectation,
) -> anyhow::Result<Load> {
    namespace(bed, name).await?;
    Ok(Load::start(
        &bed.client,
        name,
        &[Resource::widgets(versions, expectation)],
        WORKERS,
        PAUSE,
    ))
}

/// Ends the traffic; fails if a request failed.
pub(super) async fn finish(load: Load) -> anyhow::Result<Report> {
    let report = load.stop().await;
    report.check()?;
    Ok(report)
}

/// Creates a namespace unless it is there.
pub(super) async fn namespace(bed: &Bed, name: &str) -> anyhow::Result<()> {
    if crate::steps::get(&bed.client, &format!("/api/v1/namespaces/{name}"))
        .await?
        .is_none()
    {
        let object = serde_json::json!({"metadata": {"name": name}});
        succeed(&bed.client, "POST", "/api/v1/namespaces", Some(&object)).await?;
    }
    Ok(())
}
