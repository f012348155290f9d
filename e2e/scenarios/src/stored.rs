//! Widgets that a scenario stores, reads again and compares.

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    request::text,
    sample,
    steps::{PATIENCE, check, succeed, until},
};

/// The number of widgets that are created concurrently.
const CREATORS: usize = 32;

/// The page size of reads.
const PAGE: u32 = 500;

/// Creates `count` widgets in a namespace at v1: `stored-0` and so on.
///
/// # Errors
///
/// Fails if the API server rejects one.
pub async fn store(client: &Client, namespace: &str, count: usize) -> anyhow::Result<()> {
    let path = sample::widgets(namespace, "v1");
    stream::iter(0..count)
        .map(|number| {
            let mut widget = sample::widget("v1");
            widget["metadata"]["name"] = format!("stored-{number}").into();
            let path = &path;
            async move { succeed(client, "POST", path, Some(&widget)).await }
        })
        .buffer_unordered(CREATORS)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// Reads all widgets of a namespace in a version, sorted by name.
///
/// # Errors
///
/// Fails if the API server answers with an error.
pub async fn read(client: &Client, namespace: &str, version: &str) -> anyhow::Result<Vec<Value>> {
    let path = sample::widgets(namespace, version);
    let (mut widgets, mut next) = (Vec::new(), String::new());
    loop {
        let page = format!("{path}?limit={PAGE}&continue={next}");
        let mut page = succeed(client, "GET", &page, None).await?.body;
        if let Value::Array(items) = page["items"].take() {
            widgets.extend(items);
        }
        text(&page, "/metadata/continue").clone_into(&mut next);
        if next.is_empty() {
            return Ok(widgets);
        }
    }
}

/// Pairs the widgets of two reads.
///
/// # Errors
///
/// Fails if a widget was deleted or created, or changed in more than its resourceVersion.
pub fn compare(before: &[Value], after: &[Value]) -> anyhow::Result<Vec<(Value, Value)>> {
    anyhow::ensure!(
        before.len() == after.len(),
        "{} objects were {}",
        after.len(),
        before.len()
    );
    let bare = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = Value::Null;
        object
    };
    for (before, after) in before.iter().zip(after) {
        anyhow::ensure!(bare(before) == bare(after), "{before} became {after}");
    }
    Ok(before.iter().cloned().zip(after.iter().cloned()).collect())
}

/// Checks that every widget of a namespace is stored as v2: removes the conversion, which must have no owner,
/// and reads the widgets without it.
///
/// # Errors
///
/// Fails if a widget is stored in another version.
pub async fn is_stored_as_v2(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    succeed(client, "PATCH", sample::DEFINITION, Some(&none)).await?;
    let first = format!("{}?limit=1", sample::widgets(namespace, "v1"));
    until("the conversion is removed", PATIENCE, async || {
        let answer = succeed(client, "GET", &first, None).await?;
        let size = answer.body["items"][0]["spec"]["size"].clone();
        Ok(check(size.is_null(), || format!("at v1 there is size: {size}")))
    })
    .await?;
    let expected = &sample::widget("v2")["spec"]["dimensions"];
    for widget in read(client, namespace, "v2").await? {
        anyhow::ensure!(
            widget["spec"]["dimensions"] == *expected,
            "not stored as v2: {widget}"
        );
    }
    Ok(())
}
