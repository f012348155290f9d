//! The objects in the documentation, sent to an API server.

use interpreter::webhook::webhook_configuration_crd;
use windlass::commands::manifests;

use super::super::{discovery, foreign};
use crate::{
    documentation::code_blocks,
    request::{send, text},
    steps::{self, CRDS, PATIENCE, check, get, until},
    test_cluster::{TestCluster, apply, collection_of},
};

/// The namespaces of these objects.
const NAMESPACES: [&str; 2] = ["team-a", "my-operator-system"];

/// Applies each object in a dry run, and expects no warning.
pub(in super::super) async fn every_documented_object_is_accepted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    define(cluster).await?;
    let mut seen = 0;
    let mut refused = Vec::new();
    for block in code_blocks()? {
        for object in block.documents()? {
            // Values of the chart, cases, and parts of objects.
            if text(&object, "/apiVersion").is_empty() || text(&object, "/metadata/name").is_empty() {
                continue;
            }
            seen += 1;
            let path = format!("{}?dryRun=All&fieldValidation=Strict", collection_of(&object));
            let answer = send(client, "POST", &path, Some(&object)).await?;
            if answer.code != 201 || !answer.warnings.is_empty() {
                let name = text(&object, "/metadata/name");
                refused.push(format!(
                    "{}: {name}: {answer} {:?}",
                    block.page.display(),
                    answer.warnings
                ));
            }
        }
    }
    anyhow::ensure!(seen > 12, "only {seen} objects found");
    anyhow::ensure!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(())
}

/// Creates the CRDs of all kinds in the documentation.
async fn define(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    for namespace in NAMESPACES {
        super::super::traffic::create_namespace(cluster, namespace).await?;
    }
    discovery::define(cluster).await?;
    foreign::define(client, &webhook_configuration_crd()).await?;
    let definitions = manifests::policies_objects()
        .into_iter()
        .chain(manifests::customization_crds())
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    for definition in definitions {
        let path = format!("{CRDS}/{}", text(&definition, "/metadata/name"));
        if get(client, &path).await?.is_none() {
            apply(client, &definition).await?;
        }
        until(&format!("{path} is served"), PATIENCE, async || {
            let said = get(client, &path).await?.map(|crd| steps::conditions(&crd));
            let said = said.unwrap_or_default();
            Ok(check(said.contains("Established=True"), || said))
        })
        .await?;
    }
    Ok(())
}
