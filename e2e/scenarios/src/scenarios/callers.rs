//! Other callers of a bundle's pods: its ExtensionConfigs and APIServices, and callers of other owners.

use std::{fs, path::Path};

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};
use windlass_object::names;

use super::{changes::BundleChange, discovery, idle, traffic};
use crate::{
    proxy::Proxy,
    request::text,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, PATIENCE, VALIDATING, check, conditions, current, delete, get, gone,
        has_trust_bundle, list, ready, rotate, set_source, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The path of the sample's ExtensionConfig.
const EXTENSION_CONFIG: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs/sample-extension";

/// The path of a bundle's APIService.
const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.aggregated.example.com";

/// The namespace of both bundles, the Service of their Deployment, and its ServingCertificate.
const NAMESPACE: &str = "own-system";
const SERVICE: &str = "sample-operator-service";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/own-system/deployments/sample-operator";

/// The RoleBinding that lets the server of an APIService read the authentication configuration.
const AUTH_READER: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/own-system-sample-operator-service-auth-reader";

/// The BundleDeployment.
const OWN: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/own";

pub(super) async fn a_bundles_extension_config_is_armed_after_proof_and_removed_first(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, gate) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    cluster.bundle("runtime-extension")?;
    let faulty = cluster.add_bundle(&sample::bundle("runtime-extension"), "faulty")?;
    serve_untrusted_certificate(cluster, &faulty)?;
    let object = steps::bundle_deployment("own", NAMESPACE, "faulty");
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let installed = ready(client, "own", PATIENCE).await?;
    let accepted = current(&installed, "Accepted", "True").context("it is not accepted")?;
    anyhow::ensure!(
        text(accepted, "/message").contains("does not serve ExtensionConfig"),
        "the omitted objects are not reported: {accepted}"
    );
    discovery::define(cluster).await?;
    wait_for_failed_proof(cluster, EXTENSION_CONFIG).await?;
    set_source(client, "own", "runtime-extension").await?;
    let installed = ready(client, "own", PATIENCE).await?;
    check_armed(cluster, EXTENSION_CONFIG, "/spec/clientConfig", &installed).await?;
    discovery::wait_for_discovery(cluster, "sample-extension", None, 1).await?;
    rotate(client, NAMESPACE, SERVICE, "ca:callers", PATIENCE).await?;
    wait_for_bundle(cluster, EXTENSION_CONFIG, "/spec/clientConfig/caBundle").await?;
    discovery::wait_for_discovery(cluster, "sample-extension", None, 1).await?;

    let before = get(client, EXTENSION_CONFIG)
        .await?
        .context("it does not exist")?;
    let next = cluster.add_bundle(&sample::bundle("runtime-extension"), "next")?;
    cluster.edit(&next, "1.0.0", "1.0.1")?;
    // The cluster serves only the other version.
    cluster.edit(&next, "x-k8s.io/v1beta2", "x-k8s.io/v1alpha1")?;
    start_with(cluster, &next, "--versions=v1")?;
    set_source(client, "own", "next").await?;
    ready(client, "own", PATIENCE).await?;
    let after = get(client, EXTENSION_CONFIG)
        .await?
        .context("it does not exist")?;
    anyhow::ensure!(
        before["metadata"]["uid"] == after["metadata"]["uid"]
            && before["spec"]["clientConfig"]["service"] != after["spec"]["clientConfig"]["service"],
        "the pods of both revisions were called through one Service: {}",
        after["spec"]
    );
    wait_for_bundle(cluster, EXTENSION_CONFIG, "/spec/clientConfig/caBundle").await?;
    discovery::wait_for_discovery(cluster, "sample-extension", None, 1).await?;

    succeed(client, "DELETE", EXTENSION_CONFIG, None).await?;
    until("it is created again", PATIENCE, async || {
        let there = get(client, EXTENSION_CONFIG).await?;
        Ok(there.map(drop).ok_or_else(|| "404".to_owned()))
    })
    .await?;
    check_disarmed_first(cluster, &gate, EXTENSION_CONFIG).await
}

pub(super) async fn external_callers_of_a_bundle_are_served_through_upgrades(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let service = format!("{}/{}", sample::NAMESPACE, sample::CERTIFICATE);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "platform", "annotations": {names::INJECT_CA_FROM: service}},
        "webhooks": [{
            "name": "platform.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"service": {
                "namespace": sample::NAMESPACE, "name": sample::CERTIFICATE, "path": "/validate",
            }},
            "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [sample::GROUP], "apiVersions": ["*"],
                "resources": ["widgets"]}],
        }],
    });
    succeed(client, "POST", VALIDATING, Some(&configuration)).await?;
    let path = format!("{VALIDATING}/platform");
    has_trust_bundle(client, &path).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(100).await?;
    for bundle in ["sample.v2", "sample.v1", "sample.v2"] {
        cluster.bundle(bundle)?;
        sample::set_source(cluster, bundle).await?;
        ready(client, "sample", PATIENCE).await?;
        load.at_least(100).await?;
    }
    // The callers would get no answer.
    sample::set_source(cluster, &BundleChange::WebhookPaths.newer(cluster)?).await?;
    wait_for_caller_condition(client, "Accepted", "calls /validate at port 443").await?;
    load.at_least(100).await?;
    // The bundle has another Deployment with other Services.
    sample::set_source(cluster, &BundleChange::DeploymentName.newer(cluster)?).await?;
    wait_for_caller_condition(client, "Migrated", "calls Service").await?;
    load.at_least(100).await?;
    sample::set_source(cluster, "sample.v2").await?;
    ready(client, "sample", PATIENCE).await?;
    load.at_least(100).await?;
    let uninstall = ["uninstall", "sample", "--keep-stored-version"];
    let refused = cluster.command.fail(&uninstall).await?;
    anyhow::ensure!(
        refused.contains(
            "ValidatingWebhookConfiguration platform calls Service sample-system/sample-operator-service"
        ),
        "not rejected beforehand: {refused}"
    );
    let policy = json!({"spec": {"deletionPolicy": "KeepStoredVersion"}});
    succeed(client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&policy)).await?;
    succeed(client, "DELETE", sample::BUNDLE_DEPLOYMENT, None).await?;
    wait_for_caller_condition(client, "Migrated", "calls Service").await?;
    load.at_least(100).await?;
    load.stop().await.check()?;
    // Objects that the operator created are deleted with their owner.
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let roles = list(
        client,
        &format!("{role}?labelSelector={}=sample", names::BUNDLE_DEPLOYMENT),
    )
    .await?;
    let role = roles.first().context("the sample has no ClusterRole")?;
    let owned = json!({"metadata": {"ownerReferences": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "name": role["metadata"]["name"], "uid": role["metadata"]["uid"]}]}});
    succeed(client, "PATCH", &path, Some(&owned)).await?;
    gone(client, sample::BUNDLE_DEPLOYMENT).await
}

/// Waits until the called objects are kept, and the condition names the caller.
async fn wait_for_caller_condition(client: &Client, condition: &str, what: &str) -> anyhow::Result<()> {
    until("the condition names the caller", PATIENCE, async || {
        let sample = get(client, sample::BUNDLE_DEPLOYMENT)
            .await?
            .context("it does not exist")?;
        let is_told = current(&sample, condition, "False").is_some_and(|told| {
            text(told, "/reason") == "CalledByOthers"
                && text(told, "/message").contains(&format!("ValidatingWebhookConfiguration platform {what}"))
        });
        Ok(check(is_told, || conditions(&sample)))
    })
    .await
}

pub(super) async fn a_bundles_api_service_is_armed_after_proof_and_replaces_no_other(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, gate) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.aggregated.example.com"},
        "spec": {
            "group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "author-system", "name": SERVICE},
        },
    });
    for name in ["faulty", "good"] {
        let bundle = cluster.add_bundle(&sample::bundle("own-namespace"), name)?;
        fs::write(bundle.join("manifests/apiservice.json"), service.to_string())?;
    }
    serve_untrusted_certificate(cluster, &cluster.operator.bundle_dir.join("faulty"))?;

    let mut foreign = service.clone();
    foreign["spec"]["service"]["namespace"] = "kube-system".into();
    let collection = "/apis/apiregistration.k8s.io/v1/apiservices";
    succeed(client, "POST", collection, Some(&foreign)).await?;
    let mut object = steps::bundle_deployment("own", NAMESPACE, "faulty");
    object["spec"]["watchNamespaces"] = json!([NAMESPACE]);
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    until("it is rejected", PATIENCE, async || {
        let said = conditions(&get(client, OWN).await?.context("no BundleDeployment")?);
        let is_refused = said.contains("Accepted=False") && said.contains("v1.aggregated.example.com");
        Ok(check(is_refused, || said))
    })
    .await?;
    let there = get(client, API_SERVICE).await?.context("it does not exist")?;
    anyhow::ensure!(
        there["metadata"].get("labels").is_none() && there["spec"]["service"]["namespace"] == "kube-system",
        "it was changed: {there}"
    );
    delete(client, API_SERVICE).await?;

    wait_for_failed_proof(cluster, API_SERVICE).await?;
    set_source(client, "own", "good").await?;
    let installed = ready(client, "own", PATIENCE).await?;
    check_armed(cluster, API_SERVICE, "/spec", &installed).await?;
    rotate(client, NAMESPACE, SERVICE, "ca:callers", PATIENCE).await?;
    wait_for_bundle(cluster, API_SERVICE, "/spec/caBundle").await?;
    // A bundle that drops it disarms it.
    cluster.add_bundle(&sample::bundle("own-namespace"), "without")?;
    set_source(client, "own", "without").await?;
    gone(client, API_SERVICE).await?;
    ready(client, "own", PATIENCE).await?;

    let declared = cluster.add_bundle(&sample::bundle("own-namespace"), "declared")?;
    let owned = "{group: aggregated.example.com, version: v1, kind: Thing, name: things, \
                 deploymentName: sample-operator, containerPort: 9443}";
    let modes = "  installModes:";
    let definitions = format!("  apiservicedefinitions:\n    owned:\n    - {owned}\n{modes}");
    cluster.edit(&declared, modes, &definitions)?;
    set_source(client, "own", "declared").await?;
    let installed = ready(client, "own", PATIENCE).await?;
    check_armed(cluster, API_SERVICE, "/spec", &installed).await?;
    get(client, AUTH_READER)
        .await?
        .context("the server cannot read the authentication configuration")?;
    check_disarmed_first(cluster, &gate, API_SERVICE).await?;
    gone(client, AUTH_READER).await
}

/// Makes the bundle's pods serve an untrusted certificate although they are ready.
fn serve_untrusted_certificate(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    start_with(cluster, bundle, "--fault=wrong-certificate")
}

/// Starts the bundle's pods with an argument.
fn start_with(cluster: &TestCluster, bundle: &Path, argument: &str) -> anyhow::Result<()> {
    let image = format!("image: {}:v1", sample::IMAGE);
    let started = format!("{image}\n                args: [{argument}]");
    cluster.edit(bundle, &image, &started)
}

/// Waits until the install stops because the served certificate does not verify. No traffic is sent until
/// then.
async fn wait_for_failed_proof(cluster: &TestCluster, path: &str) -> anyhow::Result<()> {
    let deployment = until("the proof fails", PATIENCE, async || {
        let deployment = get(&cluster.client, OWN).await?.context("no BundleDeployment")?;
        let said = conditions(&deployment);
        Ok(if said.contains("NotServed") {
            Ok(deployment)
        } else {
            Err(said)
        })
    })
    .await?;
    anyhow::ensure!(
        get(&cluster.client, path).await?.is_none(),
        "{path} is armed before proof"
    );
    let state = &deployment["status"]["webhooks"];
    let disarmed = state.as_array().into_iter().flatten();
    anyhow::ensure!(
        disarmed.into_iter().all(|webhook| webhook["state"] == "Disarmed"),
        "armed before proof: {state}"
    );
    Ok(())
}

/// Checks that the caller of the Service had its trust bundle from its creation, and that the status of
/// `installed` lists it.
async fn check_armed(
    cluster: &TestCluster,
    path: &str,
    client_config: &str,
    installed: &Value,
) -> anyhow::Result<()> {
    wait_for_bundle(cluster, path, &format!("{client_config}/caBundle")).await?;
    let caller = get(&cluster.client, path).await?.context("it is not armed")?;
    let service = caller
        .pointer(&format!("{client_config}/service"))
        .context("no Service")?;
    anyhow::ensure!(
        service["namespace"] == NAMESPACE && text(service, "/name").starts_with(SERVICE),
        "it calls {service}"
    );
    let managers = &caller["metadata"]["managedFields"];
    anyhow::ensure!(
        !managers.to_string().contains(names::INJECT),
        "it was created without a trust bundle: {managers}"
    );
    let (kind, name) = (text(&caller, "/kind"), text(&caller, "/metadata/name"));
    let webhooks = &installed["status"]["webhooks"];
    let listed = json!({"name": name, "type": kind, "state": "Armed"});
    anyhow::ensure!(
        webhooks
            .as_array()
            .is_some_and(|webhooks| webhooks.contains(&listed)),
        "the status does not list it: {webhooks}"
    );
    Ok(())
}

/// Waits until the object has the trust bundle of the ServingCertificate.
async fn wait_for_bundle(cluster: &TestCluster, path: &str, pointer: &str) -> anyhow::Result<()> {
    let secret = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{SERVICE}-cert");
    until(&format!("{path} has the trust bundle"), PATIENCE, async || {
        let secret = get(&cluster.client, &secret).await?.context("no Secret")?;
        let caller = get(&cluster.client, path).await?;
        let carried = caller.as_ref().map(|caller| text(caller, pointer));
        Ok(check(carried == Some(text(&secret, "/data/ca.crt")), || {
            format!("{pointer} is {carried:?}")
        }))
    })
    .await
}

/// Removes the bundle after the last write, and checks that traffic stops before pods terminate.
async fn check_disarmed_first(cluster: &TestCluster, gate: &Proxy, path: &str) -> anyhow::Result<()> {
    idle::wait_until_idle(gate).await?;
    let before = gate.log().len();
    delete(&cluster.client, OWN).await?;
    let log = gate.log();
    let place = |path: &str| {
        let mut lines = log[before..].iter();
        lines.position(|line| *line == format!("DELETE {path}"))
    };
    let (disarmed, ended) = (place(path), place(DEPLOYMENT));
    anyhow::ensure!(
        disarmed.is_some() && disarmed < ended,
        "{path} was deleted at {disarmed:?}, the Deployment at {ended:?}"
    );
    anyhow::ensure!(get(&cluster.client, path).await?.is_none(), "{path} stayed");
    Ok(())
}
