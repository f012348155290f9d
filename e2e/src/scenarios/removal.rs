//! Removal, in order.

use anyhow::Context;
use serde_json::json;

use super::traffic;
use crate::{
    bed::Bed,
    sample,
    steps::{BUNDLE_DEPLOYMENTS, CRDS, MUTATING, VALIDATING, delete, get, gone, install, list, succeed},
};

/// A kind without webhooks of the CRD: what it needs must work all the time.
const CONFIG_MAPS: &str = "/api/v1/namespaces/traffic/configmaps";

pub(super) async fn webhooks_go_before_their_servers(bed: &Bed) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    let visits = traffic::visit(bed).await?;
    delete(&bed.client, &format!("{BUNDLE_DEPLOYMENTS}/sample")).await?;
    visits.finish().await?;
    anyhow::ensure!(
        list(&bed.client, VALIDATING).await?.is_empty(),
        "a validating configuration stayed"
    );
    anyhow::ensure!(
        list(&bed.client, MUTATING).await?.is_empty(),
        "a mutating configuration stayed"
    );
    gone(
        &bed.client,
        "/apis/apps/v1/namespaces/sample-system/deployments/sample-operator",
    )
    .await?;
    gone(
        &bed.client,
        "/api/v1/namespaces/sample-system/services/sample-operator-service",
    )
    .await?;
    succeed(
        &bed.client,
        "POST",
        CONFIG_MAPS,
        Some(&json!({"metadata": {"name": "afterwards"}})),
    )
    .await?;
    Ok(())
}

pub(super) async fn conversion_that_stored_objects_need_is_kept(bed: &Bed) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    traffic::namespace(bed, traffic::NAMESPACE).await?;
    let widgets = |version| {
        format!(
            "/apis/{}/{version}/namespaces/{}/widgets",
            sample::GROUP,
            traffic::NAMESPACE
        )
    };
    let object = json!({"apiVersion": "sample.windlass.dev/v1", "kind": "Widget",
        "metadata": {"name": "kept"}, "spec": {"size": 3}});
    succeed(&bed.client, "POST", &widgets("v1"), Some(&object)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
    succeed(&bed.client, "DELETE", &path, None).await?;
    let words = crate::steps::until(
        "the removal says what blocks it",
        crate::steps::PATIENCE,
        async || {
            let deployed = get(&bed.client, &path)
                .await?
                .context("it was removed although objects need it")?;
            let words = crate::steps::conditions(&deployed);
            Ok(
                if words.contains("widgets.sample.windlass.dev") && words.contains("stored") {
                    Ok(words)
                } else {
                    Err(words)
                },
            )
        },
    )
    .await?;
    let crd = get(&bed.client, &format!("{CRDS}/widgets.sample.windlass.dev"))
        .await?
        .context("no CRD")?;
    anyhow::ensure!(
        crd["spec"]["conversion"]["strategy"] == "Webhook",
        "disarmed although: {words}"
    );
    let converted = get(&bed.client, &format!("{}/kept", widgets("v1beta1"))).await?;
    anyhow::ensure!(
        converted.is_some_and(|object| object["spec"]["width"] == "3"),
        "no longer converted"
    );
    // The obstacle goes, and the removal goes on by itself.
    succeed(&bed.client, "DELETE", &format!("{}/kept", widgets("v1")), None).await?;
    gone(&bed.client, &path).await
}
