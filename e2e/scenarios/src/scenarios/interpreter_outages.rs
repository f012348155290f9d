//! An interpreter webhook of a bundle's custom resources is slow, down, and available again.

use std::{fs, time::Duration};

use anyhow::Context;
use interpreter::webhook::webhook_configuration_crd;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    foreign, idle,
    interpretation::wait_for_available,
    rights,
    service_address::{Reachability, ServiceAddress},
};
use crate::{
    operator::Running,
    proxy::Proxy,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, PATIENCE, check, conditions, current, get, has_trust_bundle, ready,
        succeed, until,
    },
    test_cluster::TestCluster,
};

const NAMESPACE: &str = "sample-interpreter-system";
const SERVICE: &str = "sample-interpreter";
const CONFIGURATIONS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations";
const OWN: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/own";
const INTERPRETER: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/interpreter";
const SCALERS: &str = "/apis/autoscaling.k8s.io/v1/namespaces/own-system/verticalpodautoscalers";

/// Longer than a pass waits for a webhook, and shorter than the webhook's timeout.
const SLOW: Duration = Duration::from_secs(6);

/// How long no request may be sent while nothing changes: several passes.
const IDLE: Duration = Duration::from_secs(12);

/// The maximum time until a webhook that was down is called again: at least once per minute.
const BACK: Duration = Duration::from_secs(60);

/// The maximum number of requests for one question within [`IDLE`]: immediately, and after 2, 4 and 8
/// seconds.
const ATTEMPTS: u64 = 4;

fn scaler(name: &str, revision: &str, dependencies: &Value) -> Value {
    json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name, "annotations": {"example.com/revision": revision}},
        "spec": {"replicas": 2, "paused": false, "dependencies": dependencies},
    })
}

/// A bundle with two custom resources, of which the first depends on the second.
fn bundle(cluster: &TestCluster, revision: &str) -> anyhow::Result<()> {
    let bundle = cluster.add_bundle(&sample::bundle("own-namespace"), revision)?;
    let needs = json!([{
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "namespace": "own-system", "name": "needed",
    }]);
    let first = scaler("first", revision, &needs);
    fs::write(bundle.join("manifests/a-first.json"), first.to_string())?;
    let needed = scaler("needed", revision, &json!([]));
    fs::write(bundle.join("manifests/b-needed.json"), needed.to_string())?;
    Ok(())
}

/// Installs the interpreter at an address of this test, and returns the address.
async fn install_interpreter(cluster: &TestCluster) -> anyhow::Result<ServiceAddress> {
    let client = &cluster.client;
    let scalers = foreign::crd(
        "autoscaling.k8s.io/v1",
        "VerticalPodAutoscaler",
        "verticalpodautoscalers",
        true,
    );
    foreign::define(client, &scalers).await?;
    foreign::define(client, &webhook_configuration_crd()).await?;
    let address = ServiceAddress::open(client, NAMESPACE, SERVICE).await?;
    interpreter_bundle(cluster, &address, "interpreter")?;
    let object = steps::bundle_deployment("interpreter", NAMESPACE, "interpreter");
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(client, "interpreter", PATIENCE).await?;
    Ok(address)
}

fn interpreter_bundle(cluster: &TestCluster, address: &ServiceAddress, revision: &str) -> anyhow::Result<()> {
    let bundle = cluster.add_bundle(&sample::bundle("interpreter"), revision)?;
    let address = address.address();
    let (ip, port) = (address.ip(), address.port());
    let with_address = format!("spec:\n  clusterIP: {ip}\n  selector:");
    cluster.edit(
        &bundle,
        "spec:\n  selector:\n    app",
        &format!("{with_address}\n    app"),
    )?;
    cluster.edit(&bundle, "port: 443", &format!("port: {port}"))
}

/// Creates a webhook configuration with these rules, and waits until it has a trust bundle.
async fn configure(cluster: &TestCluster, address: &ServiceAddress, rules: Value) -> anyhow::Result<()> {
    let configuration = json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {
            "name": SERVICE, "annotations": {"windlass.dev/inject-ca-from": format!("{NAMESPACE}/{SERVICE}")},
        },
        "webhooks": [{
            "name": "workloads.sample.windlass.dev",
            "clientConfig": {"service": {
                "namespace": NAMESPACE, "name": SERVICE, "port": address.address().port(), "path": "/interpreter-workload",
            }},
            "rules": rules, "interpreterContextVersions": ["v1alpha1"], "timeoutSeconds": 20,
        }],
    });
    let client = &cluster.client;
    succeed(client, "POST", CONFIGURATIONS, Some(&configuration)).await?;
    has_trust_bundle(client, &format!("{CONFIGURATIONS}/{SERVICE}")).await
}

fn rule(operations: &[&str], group: &str, kind: &str) -> Value {
    json!({"operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "kinds": [kind]})
}

/// The operator's count of calls of the webhook by outcome.
async fn calls(operator: &Running, outcome: &str) -> anyhow::Result<u64> {
    let metrics = operator.ask("/metrics").await?;
    let counter =
        format!("windlass_interpreter_calls_total{{configuration=\"{SERVICE}\",outcome=\"{outcome}\"}} ");
    let counted = metrics.lines().find_map(|line| line.strip_prefix(&counter));
    Ok(counted.map_or(Ok(0), |count| count.trim().parse())?)
}

/// Sets the ready replicas of a custom resource, as its controller does.
async fn set_ready_replicas(cluster: &TestCluster, name: &str, ready: u64) -> anyhow::Result<()> {
    let path = format!("{SCALERS}/{name}?fieldManager=autoscaler");
    let status = json!({"status": {"readyReplicas": ready}});
    succeed(&cluster.client, "PATCH", &path, Some(&status)).await?;
    Ok(())
}

async fn read(cluster: &TestCluster, path: &str) -> anyhow::Result<Value> {
    get(&cluster.client, path).await?.context("it does not exist")
}

fn writes(proxy: &Proxy, path: &str) -> usize {
    let write = format!("PATCH {path}");
    proxy.log().iter().filter(|line| **line == write).count()
}

/// Checks that no request is sent and nothing is written while nothing changes.
async fn check_idle(operator: &Running, proxy: &Proxy) -> anyhow::Result<()> {
    idle::wait_until_idle(proxy).await?;
    let before = (calls(operator, "success").await?, proxy.writes());
    sleep(IDLE).await;
    let after = (calls(operator, "success").await?, proxy.writes());
    anyhow::ensure!(
        before == after,
        "calls and writes were {before:?} and are {after:?}"
    );
    Ok(())
}

pub(super) async fn an_interpreter_webhook_may_be_slow_or_unavailable(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let operator = operator.start()?;
    let address = install_interpreter(cluster).await?;
    let operations = ["InterpretHealth", "Retain", "InterpretDependency"];
    let rules = json!([rule(&operations, "autoscaling.k8s.io", "VerticalPodAutoscaler")]);
    configure(cluster, &address, rules).await?;

    bundle(cluster, "one")?;
    succeed(
        client,
        "POST",
        BUNDLE_DEPLOYMENTS,
        Some(&rights::bundle_deployment("one")),
    )
    .await?;
    let (first, needed) = (format!("{SCALERS}/first"), format!("{SCALERS}/needed"));
    let who = "ResourceInterpreterWebhookConfiguration sample-interpreter";
    let words = ["VerticalPodAutoscaler own-system/first", who];
    set_ready_replicas_once_created(cluster, "first", 1).await?;
    set_ready_replicas_once_created(cluster, "needed", 2).await?;
    wait_for_available(cluster, "False", "ObjectUnhealthy", &words).await?;
    let log = proxy.log();
    let place = |path: &str| log.iter().position(|line| *line == format!("PATCH {path}"));
    anyhow::ensure!(
        place(&needed) < place(&first),
        "dependencies are applied later: {log:?}"
    );
    set_ready_replicas(cluster, "first", 2).await?;
    ready(client, "own", PATIENCE).await?;
    check_idle(&operator, &proxy).await?;
    // A complete pass in which nothing has changed.
    let before = calls(&operator, "success").await?;
    let label = json!({"metadata": {"labels": {"example.com/looked": "at"}}});
    succeed(client, "PATCH", OWN, Some(&label)).await?;
    check_idle(&operator, &proxy).await?;
    anyhow::ensure!(
        calls(&operator, "success").await? == before,
        "a pass called the webhook"
    );

    // Values of another manager are retained, also in an upgrade.
    let pause = json!({"spec": {"paused": true}});
    let path = format!("{first}?fieldManager=another-manager");
    succeed(client, "PATCH", &path, Some(&pause)).await?;
    check_idle(&operator, &proxy).await?;
    upgrade(cluster, &proxy, "two").await?;
    check_idle(&operator, &proxy).await?;

    // A pass waits only briefly, and does not delay other objects.
    address.set(Reachability::Slow(SLOW));
    set_ready_replicas(cluster, "first", 1).await?;
    let waiting = [words[0], who, "waiting for its answer"];
    wait_for_available(cluster, "Unknown", "HealthUnknown", &waiting).await?;
    wait_for_available(cluster, "False", "ObjectUnhealthy", &words).await?;
    address.set(Reachability::Open);
    set_ready_replicas(cluster, "first", 2).await?;
    ready(client, "own", PATIENCE).await?;

    // Nothing is written while retention is unknown, and a webhook that is down is not called in every pass.
    address.set(Reachability::Closed);
    set_ready_replicas(cluster, "first", 1).await?;
    let unknown = wait_for_available(cluster, "Unknown", "HealthUnknown", &words[..1]).await?;
    anyhow::ensure!(
        current(&unknown, "Armed", "True").is_some(),
        "{}",
        conditions(&unknown)
    );
    bundle(cluster, "three")?;
    let before = [&first, &needed].map(|path| writes(&proxy, path));
    steps::set_source(client, "own", "three").await?;
    until("the upgrade waits", PATIENCE, async || {
        let object = read(cluster, OWN).await?;
        let waits = object.to_string().contains("RetentionFailed");
        Ok(check(waits, || conditions(&object)))
    })
    .await?;
    let failed = calls(&operator, "failure").await?;
    sleep(IDLE).await;
    let failed = calls(&operator, "failure").await? - failed;
    // One call for health, and two for retention.
    anyhow::ensure!(failed <= 3 * ATTEMPTS, "it was called {failed} times");
    anyhow::ensure!(
        before == [&first, &needed].map(|path| writes(&proxy, path)),
        "the retained fields were not known"
    );
    ready(client, "interpreter", PATIENCE).await?;

    address.set(Reachability::Open);
    set_ready_replicas(cluster, "first", 2).await?;
    ready(client, "own", PATIENCE + BACK).await?;
    wait_for_upgrade(cluster, "three").await?;
    for (path, before) in [&first, &needed].into_iter().zip(before) {
        let written = writes(&proxy, path) - before;
        anyhow::ensure!(written == 1, "{path} was written {written} times");
    }
    check_idle(&operator, &proxy).await?;

    // A bundle that disables interpretation causes no calls.
    let switch = json!({"spec": {"interpretation": "Disabled"}});
    succeed(client, "PATCH", OWN, Some(&switch)).await?;
    ready(client, "own", PATIENCE).await?;
    let before = calls(&operator, "success").await?;
    set_ready_replicas(cluster, "needed", 0).await?;
    idle::wait_until_idle(&proxy).await?;
    ready(client, "own", PATIENCE).await?;
    anyhow::ensure!(calls(&operator, "success").await? == before, "it was called");
    Ok(())
}

async fn set_ready_replicas_once_created(
    cluster: &TestCluster,
    name: &str,
    ready: u64,
) -> anyhow::Result<()> {
    let path = format!("{SCALERS}/{name}");
    until(&format!("{name} exists"), PATIENCE, async || {
        let found = get(&cluster.client, &path).await?;
        Ok(check(found.is_some(), || "404".to_owned()))
    })
    .await?;
    set_ready_replicas(cluster, name, ready).await
}

/// Upgrades with one write per custom resource, and keeps paused objects paused.
async fn upgrade(cluster: &TestCluster, proxy: &Proxy, revision: &str) -> anyhow::Result<()> {
    let paths = ["first", "needed"].map(|name| format!("{SCALERS}/{name}"));
    let before = paths.each_ref().map(|path| writes(proxy, path));
    bundle(cluster, revision)?;
    steps::set_source(&cluster.client, "own", revision).await?;
    until(&format!("{revision} is ready"), PATIENCE, async || {
        let object = read(cluster, OWN).await?;
        let is_paused = read(cluster, &paths[0]).await?["spec"]["paused"] == true;
        anyhow::ensure!(is_paused, "{revision} has overwritten another manager's value");
        let is_ready = current(&object, "Ready", "True").is_some();
        let is_there = read(cluster, &paths[1]).await?.to_string().contains(revision);
        Ok(check(is_ready && is_there, || conditions(&object)))
    })
    .await?;
    wait_for_upgrade(cluster, revision).await?;
    idle::wait_until_idle(proxy).await?;
    for (path, before) in paths.iter().zip(before) {
        let written = writes(proxy, path) - before;
        anyhow::ensure!(written == 1, "{path} was written {written} times");
    }
    Ok(())
}

async fn wait_for_upgrade(cluster: &TestCluster, revision: &str) -> anyhow::Result<()> {
    let first = read(cluster, &format!("{SCALERS}/first")).await?;
    let is_new = first["metadata"]["annotations"]["example.com/revision"] == revision;
    anyhow::ensure!(is_new && first["spec"]["paused"] == true, "{first}");
    Ok(())
}

pub(super) async fn a_bundle_repairs_the_interpreter_of_its_own_objects(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let address = install_interpreter(cluster).await?;
    let rules = json!([
        rule(&["Retain"], "apps", "Deployment"),
        rule(
            &["InterpretHealth", "Retain"],
            "autoscaling.k8s.io",
            "VerticalPodAutoscaler"
        ),
    ]);
    configure(cluster, &address, rules).await?;
    let sizes = format!("/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalers/sizes");
    let deployment = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/sample-operator");
    let with_scaler = |revision: &str| -> anyhow::Result<()> {
        interpreter_bundle(cluster, &address, revision)?;
        let bundle = cluster.operator.bundle_dir.join(revision);
        let env = "                env:\n";
        let variable = format!("                - name: REVISION\n                  value: {revision}\n");
        cluster.edit(&bundle, env, &format!("{env}{variable}"))?;
        let scaler = scaler("sizes", revision, &json!([]));
        fs::write(bundle.join("manifests/sizes.json"), scaler.to_string())?;
        Ok(())
    };
    let has = async |path: &str, revision: &str| -> anyhow::Result<bool> {
        Ok(read(cluster, path).await?["spec"].to_string().contains(revision)
            || read(cluster, path).await?["metadata"]["annotations"]["example.com/revision"] == revision)
    };

    // Nothing waits for the health of an object before its interpreter is available.
    address.set(Reachability::Closed);
    with_scaler("second")?;
    steps::set_source(client, "interpreter", "second").await?;
    let installed = async |number: u64| {
        let what = format!("revision {number} is installed, its health is unknown");
        until(&what, PATIENCE, async || {
            let object = read(cluster, INTERPRETER).await?;
            let is_installed = object["status"]["installed"]["revision"] == number;
            let is_unknown = current(&object, "Available", "Unknown").is_some();
            Ok(check(is_installed && is_unknown, || conditions(&object)))
        })
        .await
    };
    installed(2).await?;
    anyhow::ensure!(has(&sizes, "second").await? && has(&deployment, "second").await?);
    // The questions about existing objects do not block the interpreter's own server.
    let pause = json!({"spec": {"paused": true}, "status": {"readyReplicas": 2}});
    let path = format!("{sizes}?fieldManager=another-manager");
    succeed(client, "PATCH", &path, Some(&pause)).await?;
    with_scaler("third")?;
    steps::set_source(client, "interpreter", "third").await?;
    installed(3).await?;
    anyhow::ensure!(has(&deployment, "third").await?, "the server was not upgraded");
    anyhow::ensure!(has(&sizes, "second").await?, "the retention is not known");
    address.set(Reachability::Open);
    ready(client, "interpreter", PATIENCE + BACK).await?;
    let last = read(cluster, &sizes).await?;
    anyhow::ensure!(
        has(&sizes, "third").await? && last["spec"]["paused"] == true,
        "{last}"
    );
    Ok(())
}
