//! A dump of a cluster: all objects of the collections in discovery.

use kube::Client;
use serde_json::Value;

use crate::{
    request::text,
    steps::{list, succeed},
};

/// A collection of one kind in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKind {
    /// The path of the collection.
    pub path: String,
    /// The API group; empty for core.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
}

/// Lists all collections in the preferred version of their group.
///
/// # Errors
///
/// Fails if discovery does not answer.
pub async fn collections(client: &Client) -> anyhow::Result<Vec<ListedKind>> {
    let mut found = of_version(client, "", "/api/v1").await?;
    let groups = succeed(client, "GET", "/apis", None).await?;
    for group in groups.body["groups"].as_array().into_iter().flatten() {
        let version = text(group, "/preferredVersion/groupVersion");
        found.extend(of_version(client, text(group, "/name"), &format!("/apis/{version}")).await?);
    }
    Ok(found)
}

async fn of_version(client: &Client, group: &str, root: &str) -> anyhow::Result<Vec<ListedKind>> {
    let answer = succeed(client, "GET", root, None).await?;
    let resources = answer.body["resources"].as_array().cloned().unwrap_or_default();
    let listed = resources.into_iter().filter(|resource| {
        let verbs = resource["verbs"].as_array().into_iter().flatten();
        verbs.into_iter().any(|verb| verb == "list")
    });
    Ok(listed
        .map(|resource| ListedKind {
            path: format!("{root}/{}", text(&resource, "/name")),
            group: group.to_owned(),
            resource: text(&resource, "/name").to_owned(),
        })
        .collect())
}

/// Lists the objects of the collections that `desired` selects, with their collection.
///
/// # Errors
///
/// Fails if a collection cannot be listed.
pub async fn objects(
    client: &Client,
    desired: impl Fn(&ListedKind) -> bool,
) -> anyhow::Result<Vec<(ListedKind, Value)>> {
    let mut found = Vec::new();
    for collection in collections(client).await? {
        if desired(&collection) {
            let objects = list(client, &collection.path).await?;
            found.extend(objects.into_iter().map(|object| (collection.clone(), object)));
        }
    }
    Ok(found)
}
