//! Upgrades that move the storage version: objects are rewritten, and only then an old version may go.

use anyhow::Context;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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

/// Where objects are stored that stay.
const KEPT: &str = "kept";

/// How many.
const COUNT: usize = 30;

/// How many make more than one page.
const PAGES: usize = 250;

/// The last of these in the order of names: it is on the last page.
const LAST: &str = "stored-99";

/// How long an upgrade under load may take.
const LOADED: std::time::Duration = std::time::Duration::from_secs(180);

/// How often the CRD is looked at.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// What was seen of a CRD, and of the status of the BundleDeployment, over a time.
struct Sightings {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Each `status.storedVersions`, in the order in which it came.
    stored: Vec<Value>,
    /// Each state of a migration that the status told of.
    migrations: Vec<Value>,
}

pub(super) async fn stored_objects_follow_the_storage_version(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, COUNT).await?;
    let old = ["v1", "v1beta1"];
    let before = read(&cluster.client, KEPT, "v1").await?;
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &old, Expectation::Admitted).await?;
    load.at_least(100).await?;

    let sightings = Sightings::begin(cluster);
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    until("v2 is served", LOADED, async || {
        let path = format!("/apis/{}/v2/widgets?limit=1", sample::GROUP);
        let answer = request::send(&cluster.client, "GET", &path, None).await?;
        Ok(check(answer.code != 404, || answer.to_string()))
    })
    .await?;
    let all = ["v1", "v1beta1", "v2"];
    let newest = traffic::start_at(cluster, "traffic-v2", &all, Expectation::Converted).await?;
    newest.at_least(100).await?;
    traffic::finish_at(load, &old).await?;
    ready(&cluster.client, "sample", LOADED).await?;
    let seen = sightings.end().await?;
    anyhow::ensure!(
        seen.stored == [json!(["v1"]), json!(["v1", "v2"]), json!(["v2"])],
        "storedVersions were {:?}",
        seen.stored
    );
    let told = |migration: &Value| {
        migration["version"] == "v2"
            && migration["total"]
                .as_u64()
                .is_some_and(|total| total >= COUNT as u64)
    };
    anyhow::ensure!(
        seen.migrations.iter().any(told),
        "the status did not say how many objects there are: {:?}",
        seen.migrations
    );
    for (object, after) in compare(&before, &read(&cluster.client, KEPT, "v1").await?)? {
        anyhow::ensure!(
            object["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"],
            "{} was not stored anew",
            object["metadata"]["name"]
        );
    }
    nothing_is_left(cluster).await?;
    newest.at_least(100).await?;
    traffic::finish_at(newest, &all).await?;

    let before = read(&cluster.client, KEPT, "v2").await?;
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &["v2"], Expectation::Admitted).await?;
    load.at_least(100).await?;
    let sightings = Sightings::begin(cluster);
    cluster.bundle("sample.v3")?;
    upgrade(cluster, "sample.v3").await?;
    ready(&cluster.client, "sample", LOADED).await?;
    let seen = sightings.end().await?;
    anyhow::ensure!(
        seen.stored == [json!(["v2"])],
        "storedVersions were {:?}",
        seen.stored
    );
    has_versions(cluster, &["v2"]).await?;
    load.at_least(100).await?;
    traffic::finish_at(load, &["v2"]).await?;
    for (object, after) in compare(&before, &read(&cluster.client, KEPT, "v2").await?)? {
        anyhow::ensure!(
            object == after,
            "changed, though it was stored as v2: {object} became {after}"
        );
    }
    Ok(())
}

pub(super) async fn a_version_is_dropped_only_when_nothing_is_stored_in_it(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, COUNT).await?;
    cluster.bundle("sample.v3")?;
    upgrade(cluster, "sample.v3").await?;
    until("it is refused", PATIENCE, async || {
        let object = deployed(cluster).await?;
        let said = conditions(&object);
        Ok(check(said.contains("storedVersionRemoval"), || said))
    })
    .await?;
    is_stored_as(cluster, &["v1"]).await?;
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    until("the storage version has moved", PATIENCE, async || {
        let stored = sample::crd(cluster).await?["status"]["storedVersions"].clone();
        Ok(check(stored == json!(["v1", "v2"]), || stored.to_string()))
    })
    .await?;
    // What was begun goes on, though the next bundle is refused because of it.
    upgrade(cluster, "sample.v3").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    is_stored_as(cluster, &["v2"]).await?;
    has_versions(cluster, &["v2"]).await?;
    anyhow::ensure!(
        read(&cluster.client, KEPT, "v2").await?.len() == COUNT,
        "objects are lost"
    );
    nothing_is_left(cluster).await
}

pub(super) async fn objects_that_cannot_be_rewritten_are_named(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, 3).await?;
    hold(cluster, "stored-1").await?;
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    held_up(cluster, "stored-1").await?;
    is_stored_as(cluster, &["v1", "v2"]).await?;
    let_go(cluster).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    is_stored_as(cluster, &["v2"]).await
}

/// The last page waits for an object that cannot be written, and meanwhile the CA is rotated, twice: when the object can
/// be written, the last page is next.
pub(super) async fn a_ca_rotation_does_not_throw_a_migration_back(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::namespace(cluster, KEPT).await?;
    store(&cluster.client, KEPT, PAGES).await?;
    hold(cluster, LAST).await?;
    let before = read(&cluster.client, KEPT, "v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let sightings = Sightings::begin(cluster);
    upgrade(cluster, &sample::storing_newest(cluster)?).await?;
    held_up(cluster, LAST).await?;
    let trust = sample::trust_bundle(cluster).await?;
    for _ in 0..2 {
        sample::rotate(cluster, "ca").await?;
    }
    anyhow::ensure!(
        sample::trust_bundle(cluster).await? != trust,
        "the definition trusts what it did"
    );
    held_up(cluster, LAST).await?;
    is_stored_as(cluster, &["v1", "v2"]).await?;
    let generation = sample::crd(cluster).await?["metadata"]["generation"].clone();
    until("the migration knows of the rotations", PATIENCE, async || {
        let known = deployed(cluster).await?["status"]["storageMigrations"][0]["generation"].clone();
        Ok(check(known == generation, || {
            format!("{known} is not {generation}")
        }))
    })
    .await?;
    let_go(cluster).await?;
    ready(&cluster.client, "sample", LOADED).await?;
    sightings.end().await?.goes_on()?;
    is_stored_as(cluster, &["v2"]).await?;
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;
    tracing::info!(
        requests = report.requests,
        failed = report.failed,
        "Rotated twice while objects were rewritten under load"
    );
    compare(&before, &read(&cluster.client, KEPT, "v1").await?)?;
    running.stop().await?;
    is_stored_as_v2(&cluster.client, KEPT).await
}

// === impl Sightings ===

impl Sightings {
    fn begin(cluster: &TestCluster) -> Self {
        let (client, stop) = (cluster.client.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut seen = Seen::default();
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
                tokio::time::sleep(LOOK).await;
            }
            Ok(seen)
        });
        Self { stop, task }
    }

    async fn end(self) -> anyhow::Result<Seen> {
        // What was last is seen once more.
        tokio::time::sleep(LOOK * 5).await;
        self.stop.cancel();
        self.task.await.context("looking has ended")?
    }
}

// === impl Seen ===

impl Seen {
    /// Fails where the migration has begun anew, or has gone back.
    fn goes_on(&self) -> anyhow::Result<()> {
        let pages = self
            .migrations
            .iter()
            .filter(|told| !told["resourceVersion"].is_null());
        anyhow::ensure!(pages.count() > 1, "no page was seen: {:?}", self.migrations);
        for two in self.migrations.windows(2) {
            let rewritten = |told: &Value| told["rewritten"].as_u64();
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
pub(super) async fn discard(cluster: &TestCluster, namespace: &str) -> anyhow::Result<()> {
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

/// Asks for another bundle.
async fn upgrade(cluster: &TestCluster, folder: &str) -> anyhow::Result<()> {
    set_source(&cluster.client, "sample", folder).await
}

/// Checks in which versions objects may be stored.
pub(super) async fn is_stored_as(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<()> {
    let stored = sample::crd(cluster).await?["status"]["storedVersions"].clone();
    anyhow::ensure!(
        stored == json!(versions),
        "storedVersions are {stored}, not {versions:?}"
    );
    Ok(())
}

async fn has_versions(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<()> {
    let crd = sample::crd(cluster).await?;
    let names = crd["spec"]["versions"].as_array().into_iter().flatten();
    let names: Vec<_> = names.map(|version| text(version, "/name")).collect();
    anyhow::ensure!(
        names == versions,
        "the definition has {names:?}, not {versions:?}"
    );
    Ok(())
}

/// The right that was granted for it is gone, and so is what the status said.
async fn nothing_is_left(cluster: &TestCluster) -> anyhow::Result<()> {
    for collection in ["clusterroles", "clusterrolebindings"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{collection}");
        let left = list(&cluster.client, &path).await?;
        let left = left.iter().map(|object| text(object, "/metadata/name"));
        let left: Vec<_> = left.filter(|name| name.contains("storage-migration")).collect();
        anyhow::ensure!(left.is_empty(), "{collection} are left: {left:?}");
    }
    let told = deployed(cluster).await?["status"]["storageMigrations"].clone();
    anyhow::ensure!(told.is_null(), "the status still tells of {told}");
    Ok(())
}

async fn deployed(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/sample"))
        .await?
        .context("no BundleDeployment")
}

/// Somebody's webhook that cannot be called keeps an object as it is.
async fn hold(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let held = format!("{}/{name}", sample::widgets(KEPT, "v1"));
    let label = json!({"metadata": {"labels": {"held": "true"}}});
    succeed(&cluster.client, "PATCH", &held, Some(&label)).await?;
    let stranger = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "stranger"},
        "webhooks": [{
            "name": "stranger.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": KEPT, "name": "nobody"}},
            "objectSelector": {"matchLabels": {"held": "true"}},
            "rules": [{"apiGroups": [sample::GROUP], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["widgets"]}],
        }],
    });
    succeed(&cluster.client, "POST", VALIDATING, Some(&stranger)).await?;
    Ok(())
}

/// Waits until the status names what is held.
async fn held_up(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let named = format!("Widget {KEPT}/{name}");
    until("the status names the object", LOADED, async || {
        let said = conditions(&deployed(cluster).await?);
        let names_it = said.contains("Migrated=False RewritingPaused") && said.contains(&named);
        Ok(check(names_it, || said))
    })
    .await
}

async fn let_go(cluster: &TestCluster) -> anyhow::Result<()> {
    delete(&cluster.client, &format!("{VALIDATING}/stranger")).await
}
