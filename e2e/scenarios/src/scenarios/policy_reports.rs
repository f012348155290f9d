//! Results of policies with the action Audit, in reports of the Kubernetes policy working group.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use windlass_object::{names, object};

use super::{
    foreign,
    policies::{self, API, NAMESPACE},
    traffic,
};
use crate::{
    request::{send, text},
    steps::{PATIENCE, check, delete, succeed, until},
    test_cluster::TestCluster,
};

/// Reports about objects of the namespace.
const REPORTS: &str = "/apis/wgpolicyk8s.io/v1alpha2/namespaces/platform/policyreports";

/// Reports about cluster-scoped objects.
const CLUSTER_REPORTS: &str = "/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports";

/// The ConfigMaps that the policy matches.
const MAPS: &str = "/api/v1/namespaces/platform/configmaps";

pub(super) async fn audit_violations_are_reported_while_they_last(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let _one = policies::join(cluster, "policies-one").await?;
    let _other = policies::join(cluster, "policies-other").await?;
    policies::create_policy(cluster, "clustervalidatepolicies", &audit_policy()).await?;
    write(cluster, "early", json!({})).await?;

    // The CRDs of reports are created after the policy.
    for (kind, plural, is_namespaced) in [
        ("PolicyReport", "policyreports", true),
        ("ClusterPolicyReport", "clusterpolicyreports", false),
    ] {
        foreign::define(client, &report_crd(kind, plural, is_namespaced)).await?;
    }
    let count = AtomicU32::new(0);
    let report = until("the object is reported", PATIENCE, async || {
        let count = count.fetch_add(1, Ordering::Relaxed);
        change(cluster, "early", &json!({"count": count.to_string()})).await?;
        Ok(report_of(cluster, REPORTS, "early")
            .await?
            .ok_or_else(|| "not yet".to_owned()))
    })
    .await?;
    let result = &report["results"][0];
    let actual =
        json!({"policy": result["policy"], "result": result["result"], "message": result["message"]});
    let expected = json!({"policy": "audits", "result": "fail", "message": "needed is missing"});
    anyhow::ensure!(actual == expected, "{report}");
    anyhow::ensure!(report["summary"]["fail"] == 1, "{report}");

    // A new object is reported; one from a dry run is not.
    let tried = config_map("tried", json!({}));
    succeed(client, "POST", &format!("{MAPS}?dryRun=All"), Some(&tried)).await?;
    write(cluster, "new", json!({})).await?;
    wait_for_report(cluster, REPORTS, "new", true).await?;
    anyhow::ensure!(
        report_of(cluster, REPORTS, "tried").await?.is_none(),
        "a dry run is reported"
    );

    // A result is removed when its object passes, and a report together with its object.
    change(cluster, "early", &json!({"needed": "a"})).await?;
    wait_for_report(cluster, REPORTS, "early", false).await?;
    delete(client, &format!("{MAPS}/new")).await?;
    wait_for_report(cluster, REPORTS, "new", false).await?;

    // A cluster-scoped object is reported as well. The result is removed together with its policy.
    let namespace = format!("/api/v1/namespaces/{NAMESPACE}");
    let label = json!({"metadata": {"labels": {"example.com/changed": "true"}}});
    succeed(client, "PATCH", &namespace, Some(&label)).await?;
    wait_for_report(cluster, CLUSTER_REPORTS, NAMESPACE, true).await?;
    delete(client, &format!("{API}/clustervalidatepolicies/audits")).await?;
    wait_for_report(cluster, CLUSTER_REPORTS, NAMESPACE, false).await
}

/// Returns a policy that only reports objects without `needed`.
fn audit_policy() -> Value {
    let needed =
        json!({"expression": "has(object.data) && has(object.data.needed)", "message": "needed is missing"});
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy", "metadata": {"name": "audits"},
        "spec": {
            "validationActions": ["Audit"],
            "resourceSelectors": [
                {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Namespace"},
            ],
            "validateRules": [{"targetOperations": ["CREATE", "UPDATE"], "cel": {"validations": [needed]}}],
        },
    })
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn write(cluster: &TestCluster, name: &str, data: Value) -> anyhow::Result<()> {
    let object = config_map(name, data);
    succeed(&cluster.client, "POST", MAPS, Some(&object)).await?;
    Ok(())
}

async fn change(cluster: &TestCluster, name: &str, data: &Value) -> anyhow::Result<()> {
    let path = format!("{MAPS}/{name}");
    succeed(&cluster.client, "PATCH", &path, Some(&json!({"data": data}))).await?;
    Ok(())
}

/// Reads the report about the object of this name, and checks that the object owns it.
async fn report_of(cluster: &TestCluster, folder: &str, name: &str) -> anyhow::Result<Option<Value>> {
    let list = format!("{folder}?labelSelector=app.kubernetes.io/managed-by=windlass");
    let answer = send(&cluster.client, "GET", &list, None).await?;
    anyhow::ensure!(answer.code == 200, "{answer}");
    let mut reports = object::items(&answer.body, "/items").iter();
    let report = reports.rfind(|report| text(report, "/scope/name") == name);
    if let Some(report) = report {
        let (owner, scope) = (&report["metadata"]["ownerReferences"][0], &report["scope"]);
        anyhow::ensure!(
            owner["uid"] == scope["uid"] && owner["name"] == scope["name"] && owner["kind"] == scope["kind"],
            "{report}"
        );
        let is_ours = object::items(report, "/metadata/managedFields")
            .iter()
            .all(|entry| text(entry, "/manager") == names::REPORTS);
        anyhow::ensure!(is_ours, "{report}");
    }
    Ok(report.cloned())
}

/// Waits until a report about the object of this name exists, or is deleted.
async fn wait_for_report(
    cluster: &TestCluster,
    folder: &str,
    name: &str,
    is_reported: bool,
) -> anyhow::Result<()> {
    until(
        &format!("{name} is reported: {is_reported}"),
        PATIENCE,
        async || {
            let report = report_of(cluster, folder, name).await?;
            Ok(check(report.is_some() == is_reported, || format!("{report:?}")))
        },
    )
    .await
}

/// Returns the CRD of a kind of reports with the published schema of the fields that Windlass writes.
fn report_crd(kind: &str, plural: &str, is_namespaced: bool) -> Value {
    let text = json!({"type": "string"});
    let texts = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| ((*name).to_owned(), text.clone()))
            .collect()
    };
    let count = json!({"type": "integer"});
    let mut result = texts(&["category", "message", "policy", "rule", "source"]);
    result["result"] = json!({"type": "string", "enum": ["pass", "fail", "warn", "error", "skip"]});
    result["severity"] = json!({"type": "string", "enum": ["high", "low", "medium"]});
    result["scored"] = json!({"type": "boolean"});
    result["properties"] = json!({"type": "object", "additionalProperties": text});
    result["timestamp"] = json!({
        "type": "object", "required": ["nanos", "seconds"],
        "properties": {
            "nanos": {"type": "integer", "format": "int32"}, "seconds": {"type": "integer", "format": "int64"},
        },
    });
    let scope = texts(&[
        "apiVersion",
        "fieldPath",
        "kind",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ]);
    let schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": text, "kind": text, "metadata": {"type": "object"},
            "scope": {"type": "object", "properties": scope},
            "results": {"type": "array",
                "items": {"type": "object", "required": ["policy"], "properties": result}},
            "summary": {"type": "object", "properties": {
                "pass": count, "fail": count, "warn": count, "error": count, "skip": count,
            }},
        },
    });
    let mut crd = foreign::crd("wgpolicyk8s.io/v1alpha2", kind, plural, is_namespaced);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    crd
}
