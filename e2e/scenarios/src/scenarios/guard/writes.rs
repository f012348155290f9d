//! What somebody else tries with a CRD that Windlass converts.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{
    request::{self, RequestAnswer},
    sample,
    scenarios::foreign,
    steps::{PATIENCE, check, get, until},
    test_cluster::TestCluster,
};

/// The BundleDeployment that it belongs to.
pub(super) const OWNER: &str = "sample";

/// The label that says so.
const LABEL: &str = "windlass.dev/bundle-deployment";

/// One request, and what is said to it.
pub(super) struct GuardedWrite {
    what: &'static str,
    method: &'static str,
    body: Value,
    /// Parts of the answer: each names the way out.
    says: &'static [&'static str],
}

/// What is said of the conversion.
pub(super) const CONVERSION: &str =
    "To change the conversion, update the BundleDeployment to another bundle; to stop converting, delete it";

/// What is said of the label.
pub(super) const LABELLED: &str = "as owned by the BundleDeployment sample and must not be changed. To hand over the CustomResourceDefinition, delete";

/// What is said of a deletion.
pub(super) const DELETION: &str =
    "which the BundleDeployment sample serves. Delete the BundleDeployment first";

/// How every refusal begins.
pub(super) const DENIED: &str = "admission webhook \"guard.windlass.dev\" denied the request: ";

/// Every kind of write that must not pass.
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
        write("the plain definition", "PUT", plain, &[CONVERSION, LABELLED]),
        write(
            "a patch that takes the label away",
            "PATCH",
            json!({"metadata": {"labels": {LABEL: null}}}),
            &[LABELLED],
        ),
        write(
            "a patch that gives it to another",
            "PATCH",
            json!({"metadata": {"labels": {LABEL: "other"}}}),
            &[LABELLED],
        ),
        write("a deletion", "DELETE", Value::Null, &[DELETION]),
    ]
}

/// What is nobody else's business.
fn harmless(live: &Value) -> Vec<GuardedWrite> {
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
        write("the same with an annotation", "PUT", annotated),
        write("what the bundle holds, applied", "APPLY", bundled),
    ]
}

/// Tries every forbidden write: each is refused in words that help, and changes nothing.
pub(super) async fn refused(cluster: &TestCluster) -> anyhow::Result<()> {
    let (before, stranger) = (live(cluster).await?, foreign::trust_bundle()?);
    for position in 0..forbidden(&before, &stranger).len() {
        let (write, answer) = send(cluster, |live| forbidden(live, &stranger).swap_remove(position)).await?;
        let what = write.what;
        anyhow::ensure!(answer.code == 403, "{what}: {answer}");
        for part in write.says.iter().chain([&DENIED]) {
            anyhow::ensure!(answer.message().contains(part), "{what}: not {part:?}: {answer}");
        }
        anyhow::ensure!(
            kept(&live(cluster).await?) == kept(&before),
            "{what} was refused, and has changed the definition"
        );
    }
    // The API server's own rule comes first.
    let mut versions = before["spec"]["versions"].clone();
    let others = versions.as_array_mut().context("no versions")?;
    others.retain(|version| version["storage"] == false);
    others.first_mut().context("one version")?["storage"] = json!(true);
    let patch = json!({"spec": {"versions": versions}});
    let answer = request::send(&cluster.client, "PATCH", sample::DEFINITION, Some(&patch)).await?;
    anyhow::ensure!(
        answer.code == 422 && answer.message().contains("missing from spec.versions"),
        "a stored version went: {answer}"
    );
    Ok(())
}

/// Makes every change that must not be refused.
pub(super) async fn let_through(cluster: &TestCluster) -> anyhow::Result<()> {
    let before = live(cluster).await?;
    for position in 0..harmless(&before).len() {
        let (write, answer) = send(cluster, |live| harmless(live).swap_remove(position)).await?;
        anyhow::ensure!(answer.code == 200, "{}: {answer}", write.what);
    }
    let after = live(cluster).await?;
    anyhow::ensure!(
        kept(&after) == kept(&before),
        "what was harmless has changed what Windlass keeps"
    );
    Ok(())
}

/// Tries one forbidden write without leaving anything behind.
pub(super) async fn try_out(cluster: &TestCluster) -> anyhow::Result<RequestAnswer> {
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let path = format!("{}?dryRun=All", sample::DEFINITION);
    request::send(&cluster.client, "PATCH", &path, Some(&none)).await
}

/// Waits until the guard is asked.
pub(in crate::scenarios) async fn until_asked(cluster: &TestCluster) -> anyhow::Result<()> {
    until("the guard is asked", PATIENCE, async || {
        let answer = try_out(cluster).await?;
        Ok(check(answer.is_denied(), || answer.to_string()))
    })
    .await
}

/// Tries it again and again, and fails as soon as it is not refused.
pub(in crate::scenarios) async fn until_one_passes(cluster: &TestCluster) -> anyhow::Result<()> {
    loop {
        let answer = try_out(cluster).await?;
        // Others write it at the same time.
        if !answer.is_denied() && answer.code != 409 {
            bail!("a forbidden write was not refused: {answer}");
        }
    }
}

/// Sends what `write` makes of the live CRD, again where that has changed meanwhile.
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

/// `object` without a field of what is at `parent`.
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

/// What must stay.
fn kept(live: &Value) -> [Value; 4] {
    [
        live["metadata"]["uid"].clone(),
        live["metadata"]["labels"][LABEL].clone(),
        live["metadata"]["deletionTimestamp"].clone(),
        live["spec"].clone(),
    ]
}
