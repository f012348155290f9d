//! OLM's kinds, paths and ownership labels.

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    request::text,
    steps::{CRDS, PATIENCE, check, get, succeed, until},
};

/// The group of OLM v0.
const GROUP: &str = "operators.coreos.com";

/// The variable that names a folder with OLM's CRDs, from the module github.com/operator-framework/api.
const FOLDER: &str = "E2E_OLM_CRDS";

/// All ClusterServiceVersions.
pub(super) const CSVS: &str = "/apis/operators.coreos.com/v1alpha1/clusterserviceversions";

/// All OperatorGroups.
pub(super) const OPERATOR_GROUPS: &str = "/apis/operators.coreos.com/v1/operatorgroups";

/// The kinds, with their versions and plural names.
const KINDS: [(&str, &str, &str); 3] = [
    ("ClusterServiceVersion", "v1alpha1", "clusterserviceversions"),
    ("Subscription", "v1alpha1", "subscriptions"),
    ("OperatorGroup", "v1", "operatorgroups"),
];

/// The ClusterServiceVersions of a namespace.
pub(crate) fn csvs(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/clusterserviceversions")
}

/// Creates OLM's CRDs from the named folder, or CRDs without a schema.
///
/// # Errors
///
/// Fails if they cannot be read or created, or are not served.
pub(crate) async fn definitions(client: &Client) -> anyhow::Result<()> {
    for (kind, version, plural) in KINDS {
        let crd = match std::env::var_os(FOLDER) {
            Some(folder) => {
                let file = std::path::Path::new(&folder).join(format!("{GROUP}_{plural}.yaml"));
                let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
                let documents = windlass_object::yaml::documents(&text).map_err(anyhow::Error::msg)?;
                documents.into_iter().next().context("an empty file")?
            }
            None => anything(kind, version, plural),
        };
        succeed(client, "POST", CRDS, Some(&crd)).await?;
    }
    for (_, version, plural) in KINDS {
        let path = format!("/apis/{GROUP}/{version}/{plural}");
        until("OLM's kinds are served", PATIENCE, async || {
            Ok(check(get(client, &path).await?.is_some(), || path.clone()))
        })
        .await?;
    }
    Ok(())
}

fn anything(kind: &str, version: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

/// The path of an object.
pub(super) fn path(kind: &str, namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(kind, namespace))
}

/// The path of a collection.
pub(crate) fn collection(kind: &str, namespace: &str) -> String {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let core = format!("/api/v1/namespaces/{namespace}");
    match kind {
        "Service" => format!("{core}/services"),
        "ServiceAccount" => format!("{core}/serviceaccounts"),
        "ConfigMap" => format!("{core}/configmaps"),
        "Secret" => format!("{core}/secrets"),
        "Deployment" => format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
        "Role" => format!("{rbac}/namespaces/{namespace}/roles"),
        "RoleBinding" => format!("{rbac}/namespaces/{namespace}/rolebindings"),
        "ClusterRole" => format!("{rbac}/clusterroles"),
        "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
        "MutatingWebhookConfiguration" => crate::steps::MUTATING.to_owned(),
        "ValidatingWebhookConfiguration" => crate::steps::VALIDATING.to_owned(),
        "ClusterServiceVersion" => csvs(namespace),
        "Subscription" => format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/subscriptions"),
        "OperatorCondition" => format!("/apis/{GROUP}/v2/namespaces/{namespace}/operatorconditions"),
        "PodDisruptionBudget" => format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"),
        "APIService" => "/apis/apiregistration.k8s.io/v1/apiservices".to_owned(),
        _ => CRDS.to_owned(),
    }
}

/// The labels of objects without an owner reference: `ownerutil.OwnerLabel` and `olm.managed`.
pub(crate) fn owner_labels(csv: &Value) -> Value {
    json!({
        "olm.managed": "true", "olm.owner": text(csv, "/metadata/name"),
        "olm.owner.namespace": text(csv, "/metadata/namespace"), "olm.owner.kind": "ClusterServiceVersion",
    })
}

/// `ownerutil.NonBlockingOwner`.
pub(crate) fn owner_reference(csv: &Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "name": csv["metadata"]["name"], "uid": csv["metadata"]["uid"],
        "controller": false, "blockOwnerDeletion": false,
    })
}

/// The label selector of the objects of a ClusterServiceVersion.
pub(super) fn selector(csv: &Value) -> String {
    format!(
        "?labelSelector=olm.owner%3D{},olm.owner.namespace%3D{},olm.owner.kind%3DClusterServiceVersion",
        text(csv, "/metadata/name"),
        text(csv, "/metadata/namespace")
    )
}

/// Whether `object` has the labels of `csv`.
pub(super) fn is_labelled(object: &Value, csv: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels["olm.owner"] == csv["metadata"]["name"]
        && labels["olm.owner.namespace"] == csv["metadata"]["namespace"]
}
