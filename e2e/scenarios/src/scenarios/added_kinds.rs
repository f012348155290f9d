//! Targets that request a CA by annotation only: ConfigMaps, and objects of kinds that InjectionTargets add.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};

use super::{
    foreign::{self, define},
    injection::{NAMESPACE, create_certificate},
};
use crate::{
    request,
    steps::{PATIENCE, check, conditions, current, get, request_rotation, succeed, until},
    test_cluster::TestCluster,
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/by-hand/configmaps";
const CONFIG_MAP: &str = "/api/v1/namespaces/by-hand/configmaps/trust";
const SECRET: &str = "/api/v1/namespaces/by-hand/secrets/hook-cert";
const INJECTION_TARGETS: &str = "/apis/windlass.dev/v1alpha1/injectiontargets";
const GATEWAYS: &str = "/apis/added.example.com/v1/gateways";

fn ca_annotation() -> Value {
    json!({"windlass.dev/inject-ca-from": format!("{NAMESPACE}/hook")})
}

/// The trust bundle of the ServingCertificate, in PEM.
async fn trust_bundle(client: &Client) -> anyhow::Result<String> {
    let secret = get(client, SECRET).await?.context("no serving Secret yet")?;
    let encoded = secret["data"]["ca.crt"].as_str().context("no ca.crt")?;
    Ok(String::from_utf8(STANDARD.decode(encoded)?)?)
}

/// Waits until the object at `path` has the trust bundle at `pointer`.
async fn wait_for_bundle(
    client: &Client,
    path: &str,
    pointer: &str,
    is_encoded: bool,
) -> anyhow::Result<String> {
    until(&format!("{path} has the trust bundle"), PATIENCE, async || {
        let Some(object) = get(client, path).await? else {
            return Ok(Err("it was deleted".to_owned()));
        };
        let Ok(trust) = trust_bundle(client).await else {
            return Ok(Err("no serving certificate yet".to_owned()));
        };
        let expected = match is_encoded {
            true => STANDARD.encode(&trust),
            false => trust.clone(),
        };
        let is_there = object.pointer(pointer) == Some(&json!(expected));
        Ok(check(is_there, || object.to_string()).map(|()| trust))
    })
    .await
}

/// Windlass keeps what other writers put into a ConfigMap, and removes its own part with the annotation.
pub(super) async fn a_config_map_provides_the_trust_bundle_to_pods(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    create_certificate(cluster).await?;
    let other = json!({"metadata": {"name": "other"}, "data": {"ca-bundle.crt": "theirs"}});
    succeed(client, "POST", CONFIG_MAPS, Some(&other)).await?;
    let empty = json!({"metadata": {"name": "trust", "annotations": ca_annotation()}});
    succeed(client, "POST", CONFIG_MAPS, Some(&empty)).await?;
    let pointer = "/data/ca-bundle.crt";
    let first = wait_for_bundle(client, CONFIG_MAP, pointer, false).await?;

    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trust"}, "data": {"applied": "1"}});
    let answer = request::apply(client, CONFIG_MAP, "an-owner", false, &applied).await?;
    anyhow::ensure!(answer.code < 300, "{answer}");
    let merged = json!({"data": {"merged": "1", "ca-bundle.crt": "broken"}});
    succeed(client, "PATCH", CONFIG_MAP, Some(&merged)).await?;
    wait_for_bundle(client, CONFIG_MAP, pointer, false).await?;
    let replaced =
        json!({"metadata": {"name": "trust", "annotations": ca_annotation()}, "data": {"put": "1"}});
    succeed(client, "PUT", CONFIG_MAP, Some(&replaced)).await?;
    wait_for_bundle(client, CONFIG_MAP, pointer, false).await?;

    request_rotation(client, NAMESPACE, "hook", "ca:compromised").await?;
    until("the targets trust another CA", PATIENCE, async || {
        let trust = trust_bundle(client).await?;
        Ok(check(trust != first, || {
            "the trust bundle is unchanged".to_owned()
        }))
    })
    .await?;
    wait_for_bundle(client, CONFIG_MAP, pointer, false).await?;

    let nothing = json!({"metadata": {"annotations": {"windlass.dev/inject-ca-from": null}}});
    succeed(client, "PATCH", CONFIG_MAP, Some(&nothing)).await?;
    until("the trust bundle is removed", PATIENCE, async || {
        let object = get(client, CONFIG_MAP).await?.context("it does not exist")?;
        Ok(check(object["data"] == json!({"put": "1"}), || {
            object.to_string()
        }))
    })
    .await?;
    let other = get(client, &format!("{CONFIG_MAPS}/other"))
        .await?
        .context("it does not exist")?;
    anyhow::ensure!(other["data"]["ca-bundle.crt"] == "theirs", "{other}");
    Ok(())
}

/// The rights for a kind come from the status of its InjectionTarget, where an admin finds them.
pub(super) async fn objects_of_added_kinds_request_a_ca_like_webhooks(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    create_certificate(cluster).await?;
    let added = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "InjectionTarget", "metadata": {"name": "gateways"},
        "spec": {"group": "added.example.com", "version": "v1", "kind": "Gateway", "plural": "gateways", "paths": [
            {"path": "/spec/tls/ca", "encoding": "PEM"}, {"path": "/spec/backends/*/caBundle"},
        ]},
    });
    succeed(client, "POST", INJECTION_TARGETS, Some(&added)).await?;
    let path = format!("{INJECTION_TARGETS}/gateways");
    let said = async |reason: &str| {
        until(&format!("gateways: {reason}"), PATIENCE, async || {
            let target = get(client, &path).await?.context("it does not exist")?;
            let is_reported = ["True", "False"]
                .iter()
                .filter_map(|status| current(&target, "Ready", status))
                .any(|said| said["reason"] == reason);
            Ok(check(is_reported, || conditions(&target)).map(|()| target))
        })
        .await
    };
    let target = said("NotServed").await?;
    let rights = target["status"]["rights"].as_str().context("no rights")?;
    apply_yaml(client, rights).await?;
    define(
        client,
        &foreign::crd("added.example.com/v1", "Gateway", "gateways", false),
    )
    .await?;
    said("Watched").await?;

    let gateway = json!({
        "apiVersion": "added.example.com/v1", "kind": "Gateway",
        "metadata": {"name": "edge", "annotations": ca_annotation()},
        "spec": {"tls": {"mode": "Strict"}, "backends": [
            {"port": 1},
            {"service": {"namespace": NAMESPACE, "name": "hook"}},
            {"service": {"namespace": NAMESPACE, "name": "other"}},
        ]},
    });
    succeed(client, "POST", GATEWAYS, Some(&gateway)).await?;
    let edge = format!("{GATEWAYS}/edge");
    let all_carry = async || {
        wait_for_bundle(client, &edge, "/spec/tls/ca", false).await?;
        wait_for_bundle(client, &edge, "/spec/backends/0/caBundle", true).await?;
        wait_for_bundle(client, &edge, "/spec/backends/1/caBundle", true).await
    };
    let first = all_carry().await?;
    let object = get(client, &edge).await?.context("it does not exist")?;
    let elsewhere = object.pointer("/spec/backends/2/caBundle");
    anyhow::ensure!(
        elsewhere.is_none(),
        "an entry that calls another server was written: {object}"
    );
    let drop =
        json!([{"op": "remove", "path": "/spec/tls/ca"}, {"op": "remove", "path": "/spec/backends/2"}]);
    succeed(client, "PATCH", &edge, Some(&drop)).await?;
    all_carry().await?;
    until("the target is counted", PATIENCE, async || {
        let target = get(client, &path).await?.context("it does not exist")?;
        Ok(check(target["status"]["targets"] == 1, || {
            target["status"].to_string()
        }))
    })
    .await?;

    // A rotation waits for it as for any target.
    request_rotation(client, NAMESPACE, "hook", "ca:compromised").await?;
    until("the targets trust another CA", PATIENCE, async || {
        let trust = trust_bundle(client).await?;
        Ok(check(trust != first, || {
            "the trust bundle is unchanged".to_owned()
        }))
    })
    .await?;
    all_carry().await?;

    let mut second = added;
    second["metadata"]["name"] = "again".into();
    succeed(client, "POST", INJECTION_TARGETS, Some(&second)).await?;
    // The name sorts first.
    said("KindTaken").await?;
    succeed(client, "DELETE", &format!("{INJECTION_TARGETS}/again"), None).await?;
    said("Watched").await?;
    Ok(())
}

/// Applies YAML as `kubectl apply` does.
async fn apply_yaml(client: &Client, yaml: &str) -> anyhow::Result<()> {
    for document in yaml.split("---\n") {
        let object: Value = serde_saphyr::from_str(document)?;
        let plural = match object["kind"].as_str() {
            Some("ClusterRole") => "clusterroles",
            Some("ClusterRoleBinding") => "clusterrolebindings",
            other => anyhow::bail!("unexpected kind {other:?}"),
        };
        let collection = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        succeed(client, "POST", &collection, Some(&object)).await?;
    }
    Ok(())
}
