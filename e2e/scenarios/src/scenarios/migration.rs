//! Upgrades that change the storage version of a CRD: objects are rewritten before an old version is removed.

use anyhow::Context;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_object::object;

use super::traffic;
use crate::{
    request::{self, text},
    resource::Expectation,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, VALIDATING, check, conditions, delete, get, list, ready, set_source,
        succeed, until,
    },
    stored::{compare, is_stored_as_v2, read, store},
    test_cluster::TestCluster,
};

/// The namespace of objects that must survive.
const KEPT: &str = "kept";

/// The number of stored objects.
const COUNT: usize = 30;

/// A number of stored objects that needs several pages.
const PAGES: usize = 250;

/// The object that is last in the order of names, hence on the last page.
const LAST: &str = "stored-99";

/// The timeout of an upgrade under load.
const LOAD_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(180);

/// The interval at which the CRD is polled.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Polls the CRD and the status of the BundleDeployment in the background.
struct MigrationPoller {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<MigrationHistory>>,
}

#[derive(Debug, Default)]
struct MigrationHistory {
    /// The distinct values of `status.storedVersions`, in order.
    stored: Vec<Value>,
    /// The distinct states of the migration in the status, in order.
    migrations: Vec<Value>,
}

pub(super) async fn stored_objects_follow_the_storage_version(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, COUNT).await?;
    let old = ["v1", "v1beta1"];
    let before = read(&cluster.client, KEPT, "v1").await?;
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &old, Expectation::Admitted).await?;
    load.at_least(100).await?;

    let poller = MigrationPoller::start(cluster);
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    until("v2 is served", LOAD_TIMEOUT, async || {
        let path = format!("/apis/{}/v2/widgets?limit=1", sample::GROUP);
        let answer = request::send(&cluster.client, "GET", &path, None).await?;
        Ok(check(answer.code != 404, || answer.to_string()))
    })
    .await?;
    let all = ["v1", "v1beta1", "v2"];
    let newest = traffic::start_at(cluster, "traffic-v2", &all, Expectation::Converted).await?;
    newest.at_least(100).await?;
    traffic::finish_at(load, &old).await?;
    ready(&cluster.client, "sample", LOAD_TIMEOUT).await?;
    let seen = poller.stop().await?;
    anyhow::ensure!(
        seen.stored == [json!(["v1"]), json!(["v1", "v2"]), json!(["v2"])],
        "storedVersions were {:?}",
        seen.stored
    );
    let has_total = |migration: &Value| {
        migration["version"] == "v2"
            && migration["total"]
                .as_u64()
                .is_some_and(|total| total >= COUNT as u64)
    };
    anyhow::ensure!(
        seen.migrations.iter().any(has_total),
        "the status did not report the number of objects: {:?}",
        seen.migrations
    );
    for (object, after) in compare(&before, &read(&cluster.client, KEPT, "v1").await?)? {
        anyhow::ensure!(
            object["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"],
            "{} was not rewritten",
            object["metadata"]["name"]
        );
    }
    check_cleaned_up(cluster).await?;
    newest.at_least(100).await?;
    traffic::finish_at(newest, &all).await?;

    let before = read(&cluster.client, KEPT, "v2").await?;
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &["v2"], Expectation::Admitted).await?;
    load.at_least(100).await?;
    let poller = MigrationPoller::start(cluster);
    cluster.bundle("sample.v3")?;
    upgrade(cluster, "sample.v3").await?;
    ready(&cluster.client, "sample", LOAD_TIMEOUT).await?;
    let seen = poller.stop().await?;
    anyhow::ensure!(
        seen.stored == [json!(["v2"])],
        "storedVersions were {:?}",
        seen.stored
    );
    check_versions(cluster, &["v2"]).await?;
    load.at_least(100).await?;
    traffic::finish_at(load, &["v2"]).await?;
    let after = read(&cluster.client, KEPT, "v2").await?;
    check_managers(&after)?;
    let without_managers = |objects: &[Value]| -> Vec<Value> {
        let mut objects = objects.to_vec();
        for object in &mut objects {
            object["metadata"]["managedFields"] = Value::Null;
        }
        objects
    };
    compare(&without_managers(&before), &without_managers(&after)).map(drop)
}

/// Checks that all field managers wrote at v2: with others, server-side applies fail.
fn check_managers(objects: &[Value]) -> anyhow::Result<()> {
    let managers = objects
        .iter()
        .flat_map(|stored| object::items(stored, "/metadata/managedFields"));
    let old: Vec<_> = managers
        .filter(|manager| manager["apiVersion"] != format!("{}/v2", sample::GROUP))
        .collect();
    anyhow::ensure!(old.is_empty(), "old field managers: {old:?}");
    Ok(())
}

pub(super) async fn a_version_is_removed_only_when_no_object_is_stored_in_it(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, COUNT).await?;
    cluster.bundle("sample.v3")?;
    upgrade(cluster, "sample.v3").await?;
    until("the upgrade is refused", PATIENCE, async || {
        let object = bundle_deployment(cluster).await?;
        let words = conditions(&object);
        Ok(check(words.contains("storedVersionRemoval"), || words))
    })
    .await?;
    check_stored_versions(cluster, &["v1"]).await?;
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    until(
        "the new version is in status.storedVersions",
        PATIENCE,
        async || {
            let stored = sample::crd(cluster).await?["status"]["storedVersions"].clone();
            Ok(check(stored == json!(["v1", "v2"]), || stored.to_string()))
        },
    )
    .await?;
    // The first migration finishes, although the next bundle was refused because of it.
    upgrade(cluster, "sample.v3").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    check_stored_versions(cluster, &["v2"]).await?;
    check_versions(cluster, &["v2"]).await?;
    let left = read(&cluster.client, KEPT, "v2").await?;
    anyhow::ensure!(left.len() == COUNT, "objects were lost");
    check_managers(&left)?;
    check_cleaned_up(cluster).await
}

pub(super) async fn objects_that_cannot_be_rewritten_are_named(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, 3).await?;
    block_updates(cluster, "stored-1").await?;
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    wait_until_blocked(cluster, "stored-1").await?;
    check_stored_versions(cluster, &["v1", "v2"]).await?;
    unblock_updates(cluster).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    check_stored_versions(cluster, &["v2"]).await
}

/// The last page contains an object that cannot be written. The CA is rotated twice during the wait. Once the
/// object can be written, the migration continues with the last page.
pub(super) async fn a_ca_rotation_does_not_restart_a_storage_migration(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, PAGES).await?;
    block_updates(cluster, LAST).await?;
    let before = read(&cluster.client, KEPT, "v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let poller = MigrationPoller::start(cluster);
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    wait_until_blocked(cluster, LAST).await?;
    let trust = sample::trust_bundle(cluster).await?;
    for _ in 0..2 {
        sample::rotate(cluster, "ca").await?;
    }
    anyhow::ensure!(
        sample::trust_bundle(cluster).await? != trust,
        "the trust bundle of the CRD did not change"
    );
    wait_until_blocked(cluster, LAST).await?;
    check_stored_versions(cluster, &["v1", "v2"]).await?;
    let generation = sample::crd(cluster).await?["metadata"]["generation"].clone();
    until("the migration has observed the rotations", PATIENCE, async || {
        let known = bundle_deployment(cluster).await?["status"]["storageMigrations"][0]["generation"].clone();
        Ok(check(known == generation, || {
            format!("observed generation {known}, expected {generation}")
        }))
    })
    .await?;
    unblock_updates(cluster).await?;
    ready(&cluster.client, "sample", LOAD_TIMEOUT).await?;
    poller.stop().await?.check_progress()?;
    check_stored_versions(cluster, &["v2"]).await?;
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;
    tracing::info!(
        requests = report.requests,
        failed = report.failed,
        "Rotated twice during a storage migration under load"
    );
    compare(&before, &read(&cluster.client, KEPT, "v1").await?)?;
    running.stop().await?;
    is_stored_as_v2(&cluster.client, KEPT).await
}

impl MigrationPoller {
    fn start(cluster: &TestCluster) -> Self {
        let (client, stop) = (cluster.client.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut seen = MigrationHistory::default();
            let add = |seen: &mut Vec<Value>, value: &Value| {
                if !value.is_null() && seen.last() != Some(value) {
                    seen.push(value.clone());
                }
            };
            while !stopped.is_cancelled() {
                let crd = get(&client, sample::DEFINITION).await?.context("no CRD")?;
                add(&mut seen.stored, &crd["status"]["storedVersions"]);
                let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
                let deployed = get(&client, &path).await?.unwrap_or_default();
                add(&mut seen.migrations, &deployed["status"]["storageMigrations"][0]);
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Ok(seen)
        });
        Self { stop, task }
    }

    async fn stop(self) -> anyhow::Result<MigrationHistory> {
        // Observe the final state as well.
        tokio::time::sleep(POLL_INTERVAL * 5).await;
        self.stop.cancel();
        self.task.await.context("the poller panicked")?
    }
}

impl MigrationHistory {
    /// Fails if the migration was restarted, or its progress decreased.
    fn check_progress(&self) -> anyhow::Result<()> {
        let pages = self
            .migrations
            .iter()
            .filter(|state| !state["resourceVersion"].is_null());
        anyhow::ensure!(pages.count() > 1, "no page was reported: {:?}", self.migrations);
        for two in self.migrations.windows(2) {
            let rewritten = |state: &Value| state["rewritten"].as_u64();
            anyhow::ensure!(
                two[0]["since"] == two[1]["since"] && rewritten(&two[0]) <= rewritten(&two[1]),
                "{} became {}",
                two[0],
                two[1]
            );
        }
        Ok(())
    }
}

/// Deletes the widgets of a namespace.
pub(super) async fn delete_widgets(cluster: &TestCluster, namespace: &str) -> anyhow::Result<()> {
    let path = sample::widgets(namespace, "v1");
    for widget in list(&cluster.client, &path).await? {
        delete(
            &cluster.client,
            &format!("{path}/{}", text(&widget, "/metadata/name")),
        )
        .await?;
    }
    Ok(())
}

async fn upgrade(cluster: &TestCluster, folder: &str) -> anyhow::Result<()> {
    set_source(&cluster.client, "sample", folder).await
}

/// Checks `status.storedVersions` of the CRD.
pub(super) async fn check_stored_versions(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<()> {
    let stored = sample::crd(cluster).await?["status"]["storedVersions"].clone();
    anyhow::ensure!(
        stored == json!(versions),
        "storedVersions are {stored}, not {versions:?}"
    );
    Ok(())
}

async fn check_versions(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<()> {
    let crd = sample::crd(cluster).await?;
    let names = crd["spec"]["versions"].as_array().into_iter().flatten();
    let names: Vec<_> = names.map(|version| text(version, "/name")).collect();
    anyhow::ensure!(
        names == versions,
        "the CRD has the versions {names:?}, not {versions:?}"
    );
    Ok(())
}

/// Checks that the RBAC objects of the migration were deleted, and that its status is empty.
async fn check_cleaned_up(cluster: &TestCluster) -> anyhow::Result<()> {
    for collection in ["clusterroles", "clusterrolebindings"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{collection}");
        let left = list(&cluster.client, &path).await?;
        let left = left.iter().map(|object| text(object, "/metadata/name"));
        let left: Vec<_> = left.filter(|name| name.contains("storage-migration")).collect();
        anyhow::ensure!(left.is_empty(), "{collection} were not deleted: {left:?}");
    }
    let status = bundle_deployment(cluster).await?["status"]["storageMigrations"].clone();
    anyhow::ensure!(status.is_null(), "the status still contains {status}");
    Ok(())
}

async fn bundle_deployment(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/sample"))
        .await?
        .context("no BundleDeployment")
}

/// Creates the webhook of another client that cannot be called, so that the object cannot be updated.
async fn block_updates(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let held = format!("{}/{name}", sample::widgets(KEPT, "v1"));
    let label = json!({"metadata": {"labels": {"held": "true"}}});
    succeed(&cluster.client, "PATCH", &held, Some(&label)).await?;
    let stranger = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "stranger"},
        "webhooks": [{
            "name": "stranger.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": KEPT, "name": "missing"}},
            "objectSelector": {"matchLabels": {"held": "true"}},
            "rules": [{"apiGroups": [sample::GROUP], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["widgets"]}],
        }],
    });
    succeed(&cluster.client, "POST", VALIDATING, Some(&stranger)).await?;
    Ok(())
}

/// Waits until the status names the blocked object.
async fn wait_until_blocked(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let named = format!("Widget {KEPT}/{name}");
    until("the status names the object", LOAD_TIMEOUT, async || {
        let words = conditions(&bundle_deployment(cluster).await?);
        let names_it = words.contains("Migrated=False RewritingPaused") && words.contains(&named);
        Ok(check(names_it, || words))
    })
    .await
}

async fn unblock_updates(cluster: &TestCluster) -> anyhow::Result<()> {
    delete(&cluster.client, &format!("{VALIDATING}/stranger")).await
}
