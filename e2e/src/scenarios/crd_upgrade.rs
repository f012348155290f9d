//! Upgrades to bundles whose CustomResourceDefinitions break clients or stored objects.

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    bed::Bed,
    request::text,
    sample::{self, WIDGETS},
    steps::{self, PATIENCE, get, ready, succeed},
};

/// Removes the field `^.status.phase` from both versions, and a color.
fn unsafe_bundle(bed: &Bed) -> anyhow::Result<()> {
    let bundle = bed.add_bundle(&crate::sample::bundle("sample.v1"), "unsafe")?;
    bed.edit(&bundle, "enum: [blue, green, red]", "enum: [blue, green]")?;
    bed.edit(&bundle, "              phase:", "              stage:")
}

/// Changes the spec, and waits until the upgrade is refused; the message.
async fn refused(bed: &Bed, spec: &Value) -> anyhow::Result<String> {
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&bed.client, "PATCH", path, Some(&json!({"spec": spec}))).await?;
    let object = steps::condition(&bed.client, path, "Accepted", "False", PATIENCE).await?;
    let accepted = steps::current(&object, "Accepted", "False").context("not said whether it is accepted")?;
    anyhow::ensure!(accepted["reason"] == "UnsafeCrdUpgrade", "{accepted}");
    Ok(text(accepted, "/message").to_owned())
}

async fn written(bed: &Bed) -> anyhow::Result<Vec<Value>> {
    let mut versions = Vec::new();
    for path in [sample::DEFINITION, sample::DEPLOYMENT] {
        let object = get(&bed.client, path).await?.context("an object is gone")?;
        versions.push(object["spec"].clone());
        versions.push(object["metadata"]["annotations"].clone());
    }
    Ok(versions)
}

pub(super) async fn an_unsafe_change_of_a_definition_is_refused_until_it_is_allowed(
    bed: &Bed,
) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    sample::install(bed, "sample.v1").await?;
    let before = written(bed).await?;

    unsafe_bundle(bed)?;
    let message = refused(bed, &json!({"source": {"directory": {"path": "unsafe"}}})).await?;
    for version in ["v1", "v1beta1"] {
        for finding in [
            "^.spec.color enum: allowed enum values removed : [\"red\"]".to_owned(),
            format!("^.status.phase existingFieldRemoval: removed field : {version}.^.status.phase"),
        ] {
            let line = format!("{WIDGETS} {version} {finding}");
            anyhow::ensure!(message.contains(&line), "{line} is not in: {message}");
        }
    }
    anyhow::ensure!(written(bed).await? == before, "something was written");

    // An exception for the one does not allow the other.
    let field = json!({"crd": WIDGETS, "field": "^.status", "enforcement": "None"});
    let message = refused(bed, &json!({"crdUpgradeExceptions": [field]})).await?;
    anyhow::ensure!(
        message.contains("enum") && !message.contains("existingFieldRemoval"),
        "{message}"
    );
    anyhow::ensure!(written(bed).await? == before, "something was written");

    let rule = json!({"rule": "enum", "enforcement": "Warn"});
    let patch = json!({"spec": {"crdUpgradeExceptions": [field, rule]}});
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&bed.client, "PATCH", path, Some(&patch)).await?;
    ready(&bed.client, "sample", PATIENCE).await?;
    let crd = sample::definition(bed).await?;
    let properties = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    anyhow::ensure!(
        properties["spec"]["properties"]["color"]["enum"] == json!(["blue", "green"]),
        "the change was not made: {properties}"
    );
    warned(bed).await
}

/// The change that was only warned of is told in an event.
async fn warned(bed: &Bed) -> anyhow::Result<()> {
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    steps::until("the change is told in an event", PATIENCE, async || {
        let events = steps::list(&bed.client, path).await?;
        let warnings = events
            .iter()
            .filter(|event| event["reason"] == "CrdUpgradeWarnings");
        let notes: Vec<_> = warnings.map(|event| text(event, "/note")).collect();
        let is_told = |note: &&str| note.contains("enum") && note.contains("(warning)");
        Ok(if notes.iter().any(is_told) {
            Ok(())
        } else {
            Err(format!("{notes:?}"))
        })
    })
    .await
}
