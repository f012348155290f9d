//! Two bundles that convert one CRD.

use super::traffic;
use crate::{
    bed::Bed,
    resource::Expectation,
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, condition, conditions, delete, install, ready, succeed},
};

pub(super) async fn the_second_claim_is_refused_and_takes_over_when_the_first_is_gone(
    bed: &Bed,
) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    bed.bundle("rival")?;
    let rival = steps::bundle_deployment("rival", "rival-system", "rival");
    succeed(&bed.client, "POST", BUNDLE_DEPLOYMENTS, Some(&rival)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/rival");
    let words = conditions(&condition(&bed.client, &path, "Accepted", "False", PATIENCE).await?);
    for part in [
        "ConversionClaimed",
        "sample",
        "rival",
        "widgets.sample.windlass.dev",
    ] {
        anyhow::ensure!(words.contains(part), "the refusal does not say {part}: {words}");
    }
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(50).await;
    traffic::finish(load).await?;
    delete(&bed.client, &format!("{BUNDLE_DEPLOYMENTS}/sample")).await?;
    ready(&bed.client, "rival", PATIENCE).await?;
    // The rival converts, and admits whatever comes.
    let load = traffic::start_expecting(bed, &["v1", "v1beta1"], Expectation::Converted).await?;
    load.at_least(50).await;
    traffic::finish(load).await?;
    Ok(())
}
