//! `Install()`: certificates, then Deployments, and immediately their callers.

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};

use super::{
    certificates::{OlmPair, authority_of},
    deployment::{descriptions, expected, hash, serves, service_name, webhooks},
    objects::{collection, owner_labels, owner_reference, path, selector},
};
use crate::{
    request::{self, text},
    steps::{get, list, succeed},
};

/// The field manager of OLM's applies.
const MANAGER: &str = "olm.install";

/// Writes all objects of a ClusterServiceVersion as OLM does: by name, over the changes of other writers.
pub(super) async fn install(client: &Client, csv: &Value) -> anyhow::Result<()> {
    for description in descriptions(csv) {
        let name = text(description, "/name");
        let authority = match serves(csv, name) {
            true => Some(certificate(client, csv, description).await?),
            false => None,
        };
        let ca_hash = authority.as_ref().map(|authority| hash(&json!(authority)));
        put(client, &expected(csv, description, ca_hash.as_deref())).await?;
        for webhook in webhooks(csv) {
            if let Some(authority) = authority
                .as_ref()
                .filter(|_| text(webhook, "/deploymentName") == name)
            {
                arm(client, csv, webhook, authority).await?;
            }
        }
    }
    Ok(())
}

/// `installCertRequirementsForDeployment`. Returns the CA.
async fn certificate(client: &Client, csv: &Value, description: &Value) -> anyhow::Result<String> {
    let namespace = text(csv, "/metadata/namespace");
    let service = service_name(text(description, "/name"));
    let mut ports = Vec::new();
    for webhook in webhooks(csv) {
        let port = webhook["containerPort"].as_u64().unwrap_or(443);
        let target = webhook.get("targetPort").cloned().unwrap_or_else(|| port.into());
        let port = json!({"name": port.to_string(), "port": port, "targetPort": target});
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    let owned = |kind: &str, api_version: &str, name: &str| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace,
            "labels": {"olm.managed": "true"}, "ownerReferences": [owner_reference(csv)]}})
    };
    let mut object = owned("Service", "v1", &service);
    object["spec"] = json!({"selector": description["spec"]["selector"]["matchLabels"], "ports": ports});
    apply(client, &object).await?;

    let name = format!("{service}-cert");
    let live = get(client, &path("Secret", namespace, &name)).await?;
    let managed = live.filter(|live| live["metadata"]["labels"]["olm.managed"] == "true");
    let authority = match managed.as_ref().and_then(authority_of) {
        Some(authority) => authority,
        None => {
            let pair = OlmPair::new(&service, namespace)?;
            put(client, &pair.secret(csv, &name)).await?;
            pair.authority
        }
    };

    let group = "rbac.authorization.k8s.io";
    let account = description["spec"]["template"]["spec"]["serviceAccountName"].as_str();
    let subjects =
        json!([{"kind": "ServiceAccount", "name": account.unwrap_or("default"), "namespace": namespace}]);
    let mut role = owned("Role", &format!("{group}/v1"), &name);
    role["rules"] =
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"]}]);
    put(client, &role).await?;
    let bound = |mut binding: Value, kind: &str, name: &str| {
        binding["subjects"] = subjects.clone();
        binding["roleRef"] = json!({"apiGroup": group, "kind": kind, "name": name});
        binding
    };
    put(
        client,
        &bound(owned("RoleBinding", &format!("{group}/v1"), &name), "Role", &name),
    )
    .await?;
    let delegator = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {
        "name": format!("{service}-system:auth-delegator"), "labels": owner_labels(csv)}});
    apply(client, &bound(delegator, "ClusterRole", "system:auth-delegator")).await?;
    let reader = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {
        "name": format!("{service}-auth-reader"), "namespace": "kube-system", "labels": {"olm.managed": "true"}}});
    apply(
        client,
        &bound(reader, "Role", "extension-apiserver-authentication-reader"),
    )
    .await?;
    Ok(authority)
}

/// `createOrUpdateWebhook`: finds admission configurations by label; writes conversions into the CRD.
async fn arm(client: &Client, csv: &Value, webhook: &Value, authority: &str) -> anyhow::Result<()> {
    let namespace = text(csv, "/metadata/namespace");
    let name = text(webhook, "/generateName");
    let mut service = json!({"namespace": namespace, "name": service_name(text(webhook, "/deploymentName")),
        "port": webhook["containerPort"].as_u64().unwrap_or(443)});
    if let Some(path) = webhook.get("webhookPath") {
        service["path"] = path.clone();
    }
    let bundle = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, authority);
    let called = json!({"service": service, "caBundle": bundle});
    let Some(kind) = configuration(webhook) else {
        return convert(client, webhook, &called).await;
    };
    let mut entry = json!({"name": name, "clientConfig": called});
    for field in [
        "rules",
        "failurePolicy",
        "matchPolicy",
        "objectSelector",
        "sideEffects",
        "timeoutSeconds",
        "admissionReviewVersions",
        "reinvocationPolicy",
    ] {
        if let Some(value) = webhook.get(field) {
            entry[field] = value.clone();
        }
    }
    let found = list(client, &format!("{}{}", collection(kind, ""), selector(csv))).await?;
    let named = found
        .iter()
        .filter(|one| one["metadata"]["labels"][GENERATE_NAME] == name);
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        let mut labels = owner_labels(csv);
        labels[GENERATE_NAME] = name.into();
        labels["olm.webhook-description-hash"] = hash(webhook).into();
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"generateName": format!("{name}-"), "labels": labels}, "webhooks": [entry]});
        succeed(client, "POST", &collection(kind, ""), Some(&object)).await?;
    }
    for one in named {
        let path = path(kind, "", text(one, "/metadata/name"));
        let mut object = get(client, &path).await?.context("gone")?;
        object["webhooks"] = json!([entry]);
        succeed(client, "PUT", &path, Some(&object)).await?;
    }
    Ok(())
}

/// The label of the configuration of a description.
pub(super) const GENERATE_NAME: &str = "olm.webhook-description-generate-name";

/// The kind of the configuration of a webhook; `None` for a conversion webhook.
pub(super) fn configuration(webhook: &Value) -> Option<&'static str> {
    match text(webhook, "/type") {
        "ValidatingAdmissionWebhook" => Some("ValidatingWebhookConfiguration"),
        "MutatingAdmissionWebhook" => Some("MutatingWebhookConfiguration"),
        _ => None,
    }
}

async fn convert(client: &Client, webhook: &Value, called: &Value) -> anyhow::Result<()> {
    for name in webhook["conversionCRDs"].as_array().into_iter().flatten() {
        let path = path("CustomResourceDefinition", "", name.as_str().unwrap_or_default());
        let mut crd = get(client, &path).await?.context("no CRD")?;
        let mut called = called.clone();
        if called["service"]["path"].is_null() {
            called["service"]["path"] = "/".into();
        }
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "clientConfig": called, "conversionReviewVersions": webhook["admissionReviewVersions"]}});
        succeed(client, "PUT", &path, Some(&crd)).await?;
    }
    Ok(())
}

/// Creates an object, or replaces all of it: a PUT without resourceVersion.
async fn put(client: &Client, object: &Value) -> anyhow::Result<()> {
    let (kind, namespace) = (text(object, "/kind"), text(object, "/metadata/namespace"));
    let path = path(kind, namespace, text(object, "/metadata/name"));
    let method = if get(client, &path).await?.is_some() {
        "PUT"
    } else {
        "POST"
    };
    let collection = collection(kind, namespace);
    let path = if method == "PUT" { &path } else { &collection };
    succeed(client, method, path, Some(object)).await?;
    Ok(())
}

async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    let (kind, namespace) = (text(object, "/kind"), text(object, "/metadata/namespace"));
    let path = path(kind, namespace, text(object, "/metadata/name"));
    let answer = request::apply(client, &path, MANAGER, true, object).await?;
    anyhow::ensure!(answer.code < 300, "applying {path}: {answer}");
    Ok(())
}
