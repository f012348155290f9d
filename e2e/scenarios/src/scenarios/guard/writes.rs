//! Writes of other clients to a CRD that Windlass converts.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{
    request::{self, RequestAnswer},
    sample,
    scenarios::foreign,
    steps::{PATIENCE, check, get, until},
    test_cluster::TestCluster,
};

/// The BundleDeployment of the CRD.
pub(super) const OWNER: &str = "sample";

/// The label that names it.
const LABEL: &str = "windlass.dev/bundle-deployment";

/// A request, and the expected denial.
pub(super) struct GuardedWrite {
    what: &'static str,
    method: &'static str,
    body: Value,
    /// Parts of the response; each recommends an action.
    says: &'static [&'static str],
}

/// The denial of a changed conversion.
pub(super) const CONVERSION: &str =
    "To change the conversion, update the BundleDeployment to another bundle; to stop converting, delete it";

/// The denial of a changed label.
pub(super) const OWNER_LABEL: &str = "as owned by the BundleDeployment sample and must not be changed. To hand over the CustomResourceDefinition, delete";

/// The denial of a deletion.
pub(super) const DELETION: &str =
    "which the BundleDeployment sample serves. Delete the BundleDeployment first";

/// The start of every denial.
pub(super) const DENIED: &str = "admission webhook \"guard.windlass.dev\" denied the request: ";

/// Writes that the guard must deny.
fn forbidden(live: &Value, stranger: &str) -> Vec<GuardedWrite> {
    let write = |what, method, body, says| GuardedWrite {
        what,
        method,
        body,
        says,
    };
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let config = "/spec/conversion/webhook/clientConfig";
    let plain = without(&without(live, "/spec", "conversion"), "/metadata", "labels");
    let mut elsewhere = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": sample::WIDGETS},
        "spec": {"conversion": live["spec"]["conversion"]},
    });
    elsewhere["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"] = json!("/elsewhere");
    vec![
        write(
            "a merge patch without conversion",
            "PATCH",
            json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}),
            &[CONVERSION],
        ),
        write(
            "a JSON patch of the path",
            "PATCH",
            replace(&format!("{config}/service/path"), json!("/elsewhere")),
            &[CONVERSION],
        ),
        write(
            "a JSON patch of the caBundle",
            "PATCH",
            replace(&format!("{config}/caBundle"), json!(stranger)),
            &[CONVERSION],
        ),
        write("another conversion applied", "APPLY", elsewhere, &[CONVERSION]),
        write("the plain definition", "PUT", plain, &[CONVERSION, OWNER_LABEL]),
        write(
            "a patch that removes the label",
            "PATCH",
            json!({"metadata": {"labels": {LABEL: null}}}),
            &[OWNER_LABEL],
        ),
        write(
            "a patch that names another owner",
            "PATCH",
            json!({"metadata": {"labels": {LABEL: "other"}}}),
            &[OWNER_LABEL],
        ),
        write("a deletion", "DELETE", Value::Null, &[DELETION]),
    ]
}

/// Writes that the guard must allow.
fn allowed(live: &Value) -> Vec<GuardedWrite> {
    let write = |what, method, body| GuardedWrite {
        what,
        method,
        body,
        says: &[],
    };
    let mut annotated = live.clone();
    annotated["metadata"]["annotations"]["example.com/by"] = json!("replace");
    let bundled = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": sample::WIDGETS},
        "spec": without(live, "/spec", "conversion")["spec"],
    });
    vec![
        write(
            "a label and an annotation",
            "PATCH",
            json!({"metadata": {"labels": {"example.com/l": "1"}, "annotations": {"example.com/by": "patch"}}}),
        ),
        write("a PUT with an annotation", "PUT", annotated),
        write("an apply of the bundle's manifest", "APPLY", bundled),
    ]
}

/// Checks that each forbidden write is denied with a helpful message, and changes nothing.
pub(super) async fn check_denied(cluster: &TestCluster) -> anyhow::Result<()> {
    let (before, stranger) = (live(cluster).await?, foreign::trust_bundle()?);
    for position in 0..forbidden(&before, &stranger).len() {
        let (write, answer) = send(cluster, |live| forbidden(live, &stranger).swap_remove(position)).await?;
        let what = write.what;
        anyhow::ensure!(answer.code == 403, "{what}: {answer}");
        for part in write.says.iter().chain([&DENIED]) {
            anyhow::ensure!(
                answer.message().contains(part),
                "{what}: {part:?} is not in the response: {answer}"
            );
        }
        anyhow::ensure!(
            protected_fields(&live(cluster).await?) == protected_fields(&before),
            "{what} was denied, but has changed the CRD"
        );
    }
    // The API server validates before it calls the guard.
    let mut versions = before["spec"]["versions"].clone();
    let others = versions.as_array_mut().context("no versions")?;
    others.retain(|version| version["storage"] == false);
    others.first_mut().context("one version")?["storage"] = json!(true);
    let patch = json!({"spec": {"versions": versions}});
    let answer = request::send(&cluster.client, "PATCH", sample::DEFINITION, Some(&patch)).await?;
    anyhow::ensure!(
        answer.code == 422 && answer.message().contains("missing from spec.versions"),
        "a stored version was removed: {answer}"
    );
    Ok(())
}

/// Checks that each allowed write succeeds.
pub(super) async fn check_allowed(cluster: &TestCluster) -> anyhow::Result<()> {
    let before = live(cluster).await?;
    for position in 0..allowed(&before).len() {
        let (write, answer) = send(cluster, |live| allowed(live).swap_remove(position)).await?;
        anyhow::ensure!(answer.code == 200, "{}: {answer}", write.what);
    }
    let after = live(cluster).await?;
    anyhow::ensure!(
        protected_fields(&after) == protected_fields(&before),
        "an allowed write has changed fields of Windlass"
    );
    Ok(())
}

/// Sends a forbidden write as a dry run.
pub(super) async fn send_forbidden_write(cluster: &TestCluster) -> anyhow::Result<RequestAnswer> {
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let path = format!("{}?dryRun=All", sample::DEFINITION);
    request::send(&cluster.client, "PATCH", &path, Some(&none)).await
}

/// Waits until the guard denies a forbidden write.
pub(in crate::scenarios) async fn wait_until_guarded(cluster: &TestCluster) -> anyhow::Result<()> {
    until("the guard denies a forbidden write", PATIENCE, async || {
        let answer = send_forbidden_write(cluster).await?;
        Ok(check(answer.is_denied(), || answer.to_string()))
    })
    .await
}

/// Sends forbidden writes until one is not denied, and returns an error then.
pub(in crate::scenarios) async fn send_until_allowed(cluster: &TestCluster) -> anyhow::Result<()> {
    loop {
        let answer = send_forbidden_write(cluster).await?;
        // Other clients write at the same time.
        if !answer.is_denied() && answer.code != 409 {
            bail!("a forbidden write was not denied: {answer}");
        }
    }
}

/// Sends the request that `write` builds from the live CRD, and repeats this after conflicts.
async fn send(
    cluster: &TestCluster,
    write: impl Fn(&Value) -> GuardedWrite,
) -> anyhow::Result<(GuardedWrite, RequestAnswer)> {
    loop {
        let write = write(&live(cluster).await?);
        let (client, path) = (&cluster.client, sample::DEFINITION);
        let answer = match write.method {
            "APPLY" => request::apply(client, path, "gitops", true, &write.body).await?,
            "DELETE" => request::send(client, "DELETE", path, None).await?,
            method => request::send(client, method, path, Some(&write.body)).await?,
        };
        if answer.code != 409 {
            return Ok((write, answer));
        }
    }
}

/// Returns `object` without `field` of the object at `parent`.
fn without(object: &Value, parent: &str, field: &str) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(field);
    }
    object
}

async fn live(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, sample::DEFINITION)
        .await?
        .context("no definition")
}

/// The fields that no write may change.
fn protected_fields(live: &Value) -> [Value; 4] {
    [
        live["metadata"]["uid"].clone(),
        live["metadata"]["labels"][LABEL].clone(),
        live["metadata"]["deletionTimestamp"].clone(),
        live["spec"].clone(),
    ]
}
