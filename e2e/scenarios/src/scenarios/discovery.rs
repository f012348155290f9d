//! ExtensionConfigs, whose servers receive discovery requests.

use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_object::names;

use super::{
    drift::{EXTENSION_CONFIGS, extension_config, extension_config_crd},
    foreign,
};
use crate::{
    cluster_api,
    hook_server::ScriptedHooks,
    request::text,
    sample,
    steps::{CRDS, PATIENCE, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// How long a server must receive no request.
const QUIET: Duration = Duration::from_secs(5);

/// The number of dead servers.
const DEAD: usize = 60;

/// The time limit of a discovery while dead servers are discovered too.
const SOON: Duration = Duration::from_secs(5);

/// The start of the message about handlers with unknown hooks.
const UNKNOWN_HOOKS: &str = "Omitted because their hooks are unknown: first (";

/// For each scripted response: a part of the message of the condition Discovered unless that is true, and the
/// number of handlers.
const SCRIPTS: [(&str, Option<&str>, usize); 9] = [
    ("good", None, 3),
    ("many", None, 300),
    ("slow", Some("did not answer within 10s"), 0),
    ("error", Some("HTTP 500: broken"), 0),
    ("wrong-type", Some("handlers: must be a list"), 0),
    ("unknown-hook", None, 1),
    (
        "failure",
        Some("got failure response with message: no database"),
        0,
    ),
    ("redirect", Some("HTTP 307"), 0),
    ("huge", Some("length limit exceeded"), 0),
];

pub(super) async fn extension_servers_are_discovered(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    define(cluster).await?;
    let server = ScriptedHooks::start().await?;
    for (script, ..) in SCRIPTS {
        create(cluster, script, server.client_config(script)).await?;
    }
    let mut strange = server.client_config("good");
    strange["caBundle"] = foreign::trust_bundle()?.into();
    create(cluster, "stranger", strange).await?;
    let mut bare = server.client_config("good");
    bare.as_object_mut().context("no object")?.remove("caBundle");
    create(cluster, "bare", bare).await?;

    let refused = [
        ("stranger", Some("untrusted certificate"), 0),
        ("bare", Some("caBundle is empty"), 0),
    ];
    for (name, problem, handlers) in SCRIPTS.into_iter().chain(refused) {
        wait_for_discovery(cluster, name, problem, handlers).await?;
    }
    let newer = get(&cluster.client, &path("unknown-hook"))
        .await?
        .context("it does not exist")?;
    anyhow::ensure!(
        text(&condition(&newer, "Discovered"), "/message").starts_with(UNKNOWN_HOOKS),
        "{}",
        newer["status"]
    );
    let good = get(&cluster.client, &path("good"))
        .await?
        .context("it does not exist")?;
    anyhow::ensure!(
        good["status"]["handlers"][0]
            == json!({
                "name": "first.good", "failurePolicy": "Fail", "timeoutSeconds": 10,
                "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"},
            }),
        "{}",
        good["status"]
    );
    cluster_api::registers(cluster, &good, 3).await?;
    anyhow::ensure!(
        condition(&good, "Paused")["reason"] == "NotPaused",
        "{}",
        good["status"]
    );

    // The response differs each time.
    let before = server.request_count("failure");
    tokio::time::sleep(QUIET).await;
    let times = server.request_count("failure") - before;
    anyhow::ensure!(times < 4, "received {times} requests");

    // The handlers of the last successful discovery stay.
    let url = |script: &str| json!({"spec": {"clientConfig": server.client_config(script)}});
    succeed(&cluster.client, "PATCH", &path("good"), Some(&url("error"))).await?;
    wait_for_discovery(cluster, "good", Some("HTTP 500: broken"), 3).await?;
    succeed(&cluster.client, "PATCH", &path("good"), Some(&url("less"))).await?;
    wait_for_discovery(cluster, "good", None, 2).await
}

pub(super) async fn dead_servers_do_not_delay_other_discoveries(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    define(cluster).await?;
    let server = ScriptedHooks::start().await?;
    for index in 0..DEAD {
        create(cluster, &format!("dead-{index}"), server.client_config("slow")).await?;
    }
    for (name, script, handlers) in [("first", "good", 3), ("second", "less", 2)] {
        create(cluster, name, server.client_config(script)).await?;
        wait_for_discovery_within(SOON, cluster, name, None, handlers).await?;
        // By then, their first discovery has failed.
        wait_for_discovery(
            cluster,
            &format!("dead-{}", DEAD - 1),
            Some("did not answer within 10s"),
            0,
        )
        .await?;
    }
    Ok(())
}

pub(super) async fn extension_configs_that_are_paused_or_managed_elsewhere_are_skipped(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    define(cluster).await?;
    let server = ScriptedHooks::start().await?;
    create(cluster, "paused", server.client_config("good")).await?;
    wait_for_discovery(cluster, "paused", None, 3).await?;
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}, "spec": {"clientConfig": server.client_config("less")}});
    succeed(client, "PATCH", &path("paused"), Some(&paused)).await?;
    until("it is paused", PATIENCE, async || {
        let config = get(client, &path("paused")).await?.context("it does not exist")?;
        Ok(check(condition(&config, "Paused")["status"] == "True", || {
            config["status"].to_string()
        }))
    })
    .await?;
    anyhow::ensure!(
        server.request_count("less") == 0,
        "the server was called while its ExtensionConfig is paused"
    );

    let namespace = json!({"metadata": {"name": "capi-system"}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let lease = json!({
        "metadata": {"name": "controller-leader-election-capi"},
        "spec": {
            "holderIdentity": "capi", "leaseDurationSeconds": 600,
            "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string(),
        },
    });
    let leases = "/apis/coordination.k8s.io/v1/namespaces/capi-system/leases";
    succeed(client, "POST", leases, Some(&lease)).await?;
    // The operator's watch may lag.
    tokio::time::sleep(Duration::from_secs(1)).await;
    create(cluster, "theirs", server.client_config("many")).await?;
    tokio::time::sleep(QUIET).await;
    anyhow::ensure!(
        server.request_count("many") == 0,
        "the server was called although Cluster API's own manager runs"
    );
    let theirs = get(client, &path("theirs")).await?.context("it does not exist")?;
    anyhow::ensure!(theirs.get("status").is_none(), "{theirs}");
    let ours = json!({"metadata": {"annotations": {names::DISCOVER: "true"}}});
    succeed(client, "PATCH", &path("theirs"), Some(&ours)).await?;
    wait_for_discovery(cluster, "theirs", None, 300).await
}

pub(super) async fn an_older_version_is_discovered_until_a_newer_one_is_served(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let mut crd = definition();
    crd["spec"]["versions"][0]["name"] = "v1alpha1".into();
    foreign::define(&cluster.client, &crd).await?;
    let server = ScriptedHooks::start().await?;
    let config = json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1alpha1", "kind": "ExtensionConfig",
        "metadata": {"name": "older"}, "spec": {"clientConfig": server.client_config("good")},
    });
    let older = EXTENSION_CONFIGS.replace("v1beta2", "v1alpha1");
    succeed(client, "POST", &older, Some(&config)).await?;
    until("it is discovered", PATIENCE, async || {
        let config = get(client, &format!("{older}/older"))
            .await?
            .context("it does not exist")?;
        let discovered = &config["status"]["v1beta2"]["conditions"][0];
        let is_reported = discovered["type"] == "Discovered" && discovered["status"] == "True";
        Ok(check(
            is_reported && config["status"]["handlers"].as_array().map(Vec::len) == Some(3),
            || config.to_string(),
        ))
    })
    .await?;

    let config = get(client, &format!("{older}/older"))
        .await?
        .context("it does not exist")?;
    cluster_api::registers(cluster, &config, 3).await?;

    let mut versions = crd["spec"]["versions"].clone();
    let mut newer = versions[0].clone();
    newer["name"] = "v1beta2".into();
    newer["storage"] = false.into();
    versions.as_array_mut().context("no versions")?.push(newer);
    let served = json!({"spec": {"versions": versions}});
    succeed(
        client,
        "PATCH",
        &format!("{CRDS}/extensionconfigs.runtime.cluster.x-k8s.io"),
        Some(&served),
    )
    .await?;
    until("the newer version is served", PATIENCE, async || {
        Ok(check(get(client, &path("older")).await?.is_some(), || {
            "404".to_owned()
        }))
    })
    .await?;
    wait_for_discovery(cluster, "older", None, 3).await?;
    let url = json!({"spec": {"clientConfig": server.client_config("less")}});
    succeed(client, "PATCH", &path("older"), Some(&url)).await?;
    wait_for_discovery(cluster, "older", None, 2).await
}

pub(super) async fn a_server_behind_a_service_is_discovered_while_its_ca_rotates(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    define(cluster).await?;
    sample::install(cluster, "sample.v1").await?;
    succeed(
        &cluster.client,
        "POST",
        EXTENSION_CONFIGS,
        Some(&extension_config()),
    )
    .await?;
    wait_for_discovery(cluster, "hooks", None, 1).await?;
    sample::rotate(cluster, "ca:discovery").await?;
    wait_for_discovery(cluster, "hooks", None, 1).await
}

/// Creates the CRD of ExtensionConfigs, with a status subresource.
pub(super) async fn define(cluster: &TestCluster) -> anyhow::Result<()> {
    foreign::define(&cluster.client, &definition()).await
}

fn definition() -> Value {
    let mut crd = extension_config_crd();
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    crd
}

async fn create(cluster: &TestCluster, name: &str, client_config: Value) -> anyhow::Result<()> {
    let config = json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": name}, "spec": {"clientConfig": client_config},
    });
    succeed(&cluster.client, "POST", EXTENSION_CONFIGS, Some(&config)).await?;
    Ok(())
}

/// Waits until an ExtensionConfig reports these handlers or this problem, within [`PATIENCE`].
pub(super) async fn wait_for_discovery(
    cluster: &TestCluster,
    name: &str,
    problem: Option<&str>,
    handlers: usize,
) -> anyhow::Result<()> {
    wait_for_discovery_within(PATIENCE, cluster, name, problem, handlers).await
}

/// Waits until the current status of an ExtensionConfig has this number of handlers, and reports `problem` or
/// success.
async fn wait_for_discovery_within(
    patience: Duration,
    cluster: &TestCluster,
    name: &str,
    problem: Option<&str>,
    handlers: usize,
) -> anyhow::Result<()> {
    until(
        &format!("{name} reports the result of its discovery"),
        patience,
        async || {
            let config = get(&cluster.client, &path(name))
                .await?
                .context("it does not exist")?;
            let said = condition(&config, "Discovered");
            let count = config["status"]["handlers"].as_array().map_or(0, Vec::len);
            let message = said["message"].as_str().unwrap_or_default();
            let is_reported = match problem {
                None => {
                    said["status"] == "True" && (message.is_empty() || message.starts_with(UNKNOWN_HOOKS))
                }
                Some(problem) => said["status"] == "False" && message.contains(problem),
            };
            let is_current = said["observedGeneration"] == config["metadata"]["generation"];
            Ok(check(is_reported && is_current && count == handlers, || {
                format!("{said} {count}")
            }))
        },
    )
    .await
}

fn condition(config: &Value, condition_type: &str) -> Value {
    let conditions = config["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == condition_type);
    found.cloned().unwrap_or_default()
}

fn path(name: &str) -> String {
    format!("{EXTENSION_CONFIGS}/{name}")
}
