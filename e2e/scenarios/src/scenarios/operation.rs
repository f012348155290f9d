//! The operations of an administrator, which can be started, repeated and checked.

use serde_json::{Value, json};
use windlass_object::names;

use super::{
    changes::BundleChange,
    migration,
    traffic::{self, Visits},
};
use crate::{
    load::Load,
    sample::{self, NAMESPACE},
    snapshot::Snapshot,
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, delete, get, succeed, until},
    stored,
    test_cluster::TestCluster,
};

/// The number of objects that exist before a migration or a removal.
const STORED: usize = 4;

/// A namespace that does not belong to the sample but contains widgets.
const OUTSIDE: &str = "outside";

/// Another object in [`OUTSIDE`].
const NEIGHBOUR: &str = "/api/v1/namespaces/outside/configmaps/neighbour";

const SYSTEM: &str = "/api/v1/namespaces/sample-system";

/// The interval at which the cluster is polled.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// How long nothing may change until an operation counts as finished.
pub(super) const QUIET: std::time::Duration = std::time::Duration::from_secs(1);

/// An operation that the operator performs in many writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdminOperation {
    Install,
    Upgrade,
    /// A rollback to a bundle that serves fewer versions.
    Rollback,
    /// An upgrade to a bundle with one of the changes that can interrupt traffic.
    Change(BundleChange),
    /// An upgrade that changes the storage version.
    Migration,
    LeafRotation,
    CaRotation,
    Removal,
    /// A removal that deletes the CRDs and all their objects.
    RemovalWithCrds,
    /// A removal after the namespace with the servers was deleted.
    RemovalAfterNamespace,
}

/// The state before an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// The certificate in the serving Secret.
    leaf: Value,
    /// The generation of the current CA.
    authority: Option<i64>,
    /// The generation of the CRD.
    crd: Option<i64>,
    /// The objects in [`OUTSIDE`].
    outside: Vec<Value>,
    /// The resourceVersions of the BundleDeployment and the ServingCertificate, whose status shows the
    /// progress.
    versions: [Value; 2],
}

/// The clients that use the sample during an operation.
pub(super) enum OperationClients {
    /// None: nothing is installed yet, or no server remains.
    None,
    /// Requests through all webhooks.
    Load(Load),
    /// Requests through all webhooks, also at the version that the older bundle lacks, and whether that is
    /// served before and after the operation.
    LoadAtNewest(Load, [bool; 2]),
    /// Objects that are created and deleted while webhooks are removed.
    Visits(Visits),
}

impl AdminOperation {
    /// Creates the state in which the operation starts, from an empty cluster. The operator must be running.
    pub(super) async fn prepare(self, cluster: &TestCluster) -> anyhow::Result<()> {
        if self == Self::Install {
            return Ok(());
        }
        // The preferred version of the newer sample is not the storage version, so the namespace controller
        // needs a conversion to delete all objects.
        let folder = match self {
            Self::RemovalAfterNamespace => cluster.bundle("sample.v2")?,
            Self::Change(change) => cluster.operator.bundle_dir.join(change.older(cluster)?),
            _ => cluster.bundle("sample.v1")?,
        };
        steps::install(&cluster.client, "sample", NAMESPACE, &folder).await?;
        sample::settled(cluster).await?;
        if self == Self::Rollback {
            cluster.bundle("sample.v2")?;
            sample::set_source(cluster, "sample.v2").await?;
            steps::ready(&cluster.client, "sample", PATIENCE).await?;
            sample::settled(cluster).await?;
        }
        if matches!(
            self,
            Self::Migration | Self::RemovalWithCrds | Self::RemovalAfterNamespace
        ) {
            stored::store(&cluster.client, NAMESPACE, STORED).await?;
        }
        if matches!(self, Self::RemovalWithCrds | Self::RemovalAfterNamespace) {
            traffic::create_namespace(cluster, OUTSIDE).await?;
            stored::store(&cluster.client, OUTSIDE, STORED).await?;
            let neighbour = json!({"metadata": {"name": "neighbour"}, "data": {"a": "b"}});
            let path = format!("/api/v1/namespaces/{OUTSIDE}/configmaps");
            succeed(&cluster.client, "POST", &path, Some(&neighbour)).await?;
        }
        if self == Self::CaRotation {
            // Each rotation except the first finds the cross certificate of the previous one.
            sample::rotate(cluster, "ca").await?;
        }
        Ok(())
    }

    /// Reports whether the operation can be repeated from its final state.
    pub(super) fn is_repeatable(self) -> bool {
        matches!(self, Self::LeafRotation | Self::CaRotation)
    }

    /// Removes what the operation installed if it cannot be repeated otherwise. The operator must be running.
    pub(super) async fn undo(self, cluster: &TestCluster) -> anyhow::Result<()> {
        match self {
            Self::Install | Self::Upgrade | Self::Rollback | Self::Change(_) => {
                delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await
            }
            Self::Migration => {
                // Objects that need their conversion would block the removal.
                migration::delete_widgets(cluster, NAMESPACE).await?;
                delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await
            }
            _ => Ok(()),
        }
    }

    /// Starts the operation, and returns the state before it.
    pub(super) async fn start(self, cluster: &TestCluster) -> anyhow::Result<Before> {
        if matches!(self, Self::LeafRotation | Self::CaRotation) {
            // A new generation can be detected only if the status shows the previous one.
            sample::settled(cluster).await?;
        }
        let mut before = Before::take(cluster).await?;
        match self {
            Self::Install => {
                cluster.bundle("sample.v1")?;
                let object = steps::bundle_deployment("sample", NAMESPACE, "sample.v1");
                succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
            }
            Self::Change(change) => {
                let newer = change.newer(cluster)?;
                sample::set_source(cluster, &newer).await?;
            }
            Self::Upgrade => {
                cluster.bundle("sample.v2")?;
                sample::set_source(cluster, "sample.v2").await?;
            }
            Self::Rollback => {
                let source = json!({"directory": {"path": "sample.v1"}});
                let older = json!({"spec": {"allowDowngrade": true, "source": source}});
                succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&older)).await?;
            }
            Self::Migration => {
                let folder = sample::storing_newest(cluster)?;
                sample::set_source(cluster, &folder).await?;
            }
            Self::LeafRotation => sample::request_rotation(cluster, "leaf").await?,
            Self::CaRotation => sample::request_rotation(cluster, "ca").await?,
            Self::Removal => {
                succeed(&cluster.client, "DELETE", sample::BUNDLE_DEPLOYMENT, None).await?;
            }
            Self::RemovalWithCrds => {
                before.outside = outside_objects(cluster).await?;
                let policy = json!({"spec": {"deletionPolicy": "DeleteCRDs"}});
                succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&policy)).await?;
                succeed(&cluster.client, "DELETE", sample::BUNDLE_DEPLOYMENT, None).await?;
            }
            Self::RemovalAfterNamespace => {
                before.outside = outside_objects(cluster).await?;
                succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
                succeed(&cluster.client, "DELETE", sample::BUNDLE_DEPLOYMENT, None).await?;
            }
        }
        before.versions = Before::take(cluster).await?.versions;
        Ok(before)
    }

    /// Reports whether the operation is finished according to everything that a user can observe.
    pub(super) async fn is_done(self, cluster: &TestCluster, before: &Before) -> anyhow::Result<bool> {
        let now = Before::take(cluster).await?;
        Ok(match self {
            Self::Install | Self::Upgrade | Self::Rollback | Self::Change(_) | Self::Migration => {
                let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT)
                    .await?
                    .unwrap_or_default();
                steps::current(&object, "Ready", "True").is_some()
            }
            Self::LeafRotation => now.leaf != before.leaf && is_settled(cluster).await?,
            Self::CaRotation => now.authority > before.authority && is_settled(cluster).await?,
            Self::Removal | Self::RemovalWithCrds => {
                get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?.is_none()
            }
            Self::RemovalAfterNamespace => {
                get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?.is_none()
                    && get(&cluster.client, SYSTEM).await?.is_none()
            }
        })
    }

    /// Checks what must have happened exactly once, in addition to the final state.
    pub(super) async fn check(self, cluster: &TestCluster, before: &Before) -> anyhow::Result<()> {
        let now = Before::take(cluster).await?;
        if self == Self::Migration {
            migration::check_stored_versions(cluster, &["v2"]).await?;
        }
        if self == Self::CaRotation {
            anyhow::ensure!(
                now.authority == before.authority.map(|number| number + 1),
                "one rotation was requested, but the CA changed from generation {:?} to {:?}",
                before.authority,
                now.authority
            );
            anyhow::ensure!(
                now.crd == before.crd.map(|number| number + 1),
                "one rotation was requested, but the CRD changed from generation {:?} to {:?}",
                before.crd,
                now.crd
            );
        }
        if matches!(self, Self::RemovalWithCrds | Self::RemovalAfterNamespace) {
            let goes = |object: &&Value| self == Self::RemovalWithCrds && object["kind"] == "Widget";
            let stays: Vec<_> = before
                .outside
                .iter()
                .filter(|object| !goes(object))
                .cloned()
                .collect();
            let now = outside_objects(cluster).await?;
            anyhow::ensure!(
                now == stays,
                "objects in another namespace were {stays:?}, and are now {now:?}"
            );
        }
        if self == Self::LeafRotation {
            anyhow::ensure!(
                now.authority == before.authority && now.crd == before.crd,
                "a renewal of the leaf changed the CA or a target: {before:?} became {now:?}"
            );
        }
        Ok(())
    }

    /// Starts the clients that use the sample during the operation.
    pub(super) async fn start_clients(self, cluster: &TestCluster) -> anyhow::Result<OperationClients> {
        Ok(match self {
            Self::Install | Self::RemovalAfterNamespace => OperationClients::None,
            Self::Removal | Self::RemovalWithCrds => {
                OperationClients::Visits(traffic::start_visits(cluster).await?)
            }
            Self::Upgrade | Self::Rollback | Self::Change(_) | Self::Migration => {
                let adds = self != Self::Rollback;
                let load = traffic::start_slowly_with_newest(cluster).await?;
                OperationClients::LoadAtNewest(load, [!adds, adds])
            }
            _ => OperationClients::Load(traffic::start_slowly(cluster, &["v1", "v1beta1"]).await?),
        })
    }
}

/// Waits until the cluster has the state `end`.
pub(super) async fn wait_for_state(cluster: &TestCluster, end: &Snapshot) -> anyhow::Result<()> {
    until(
        "the cluster has the same state as after an undisturbed run",
        PATIENCE,
        async || {
            let differences = end.differences(&take(cluster).await?);
            if differences.is_empty() {
                return Ok(Ok(()));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            Ok(Err(differences.join("\n  ")))
        },
    )
    .await
}

/// Waits until nothing changes, and returns the state of the cluster.
pub(super) async fn wait_until_unchanged(cluster: &TestCluster) -> anyhow::Result<Snapshot> {
    until("the cluster does not change", PATIENCE, async || {
        let before = take(cluster).await?;
        tokio::time::sleep(QUIET).await;
        let after = take(cluster).await?;
        let mut changes = before.differences(&after);
        changes.extend(
            after
                .ending()
                .iter()
                .map(|place| format!("{place} is being deleted")),
        );
        Ok(if changes.is_empty() {
            Ok(after)
        } else {
            Err(changes.join("\n  "))
        })
    })
    .await
}

/// Reports whether the operator has started the operation.
pub(super) async fn has_begun(cluster: &TestCluster, before: &Before) -> anyhow::Result<bool> {
    Ok(Before::take(cluster).await?.versions != before.versions)
}

/// Takes a snapshot of the cluster without the objects of the clients.
pub(super) async fn take(cluster: &TestCluster) -> anyhow::Result<Snapshot> {
    Snapshot::take(&cluster.client, &[traffic::NAMESPACE]).await
}

async fn is_settled(cluster: &TestCluster) -> anyhow::Result<bool> {
    let object = get(&cluster.client, sample::SERVING_CERTIFICATE)
        .await?
        .unwrap_or_default();
    let request = &object["metadata"]["annotations"][names::ROTATE];
    Ok(steps::is_settled(&object) && object["status"]["rotated"] == *request)
}

/// Reads the objects in [`OUTSIDE`].
async fn outside_objects(cluster: &TestCluster) -> anyhow::Result<Vec<Value>> {
    let mut objects: Vec<_> = get(&cluster.client, NEIGHBOUR).await?.into_iter().collect();
    let widgets = sample::widgets(OUTSIDE, "v1");
    let listed = get(&cluster.client, &widgets).await?.unwrap_or_default();
    for mut widget in listed["items"].as_array().cloned().unwrap_or_default() {
        // Items of a list may lack a kind.
        widget["kind"] = json!("Widget");
        objects.push(widget);
    }
    Ok(objects)
}

impl Before {
    async fn take(cluster: &TestCluster) -> anyhow::Result<Self> {
        let secret = get(&cluster.client, sample::SERVING_SECRET)
            .await?
            .unwrap_or_default();
        let object = get(&cluster.client, sample::SERVING_CERTIFICATE)
            .await?
            .unwrap_or_default();
        let deployed = get(&cluster.client, sample::BUNDLE_DEPLOYMENT)
            .await?
            .unwrap_or_default();
        let crd = get(&cluster.client, sample::DEFINITION)
            .await?
            .unwrap_or_default();
        Ok(Self {
            leaf: secret["data"]["tls.crt"].clone(),
            authority: object["status"]["ca"]["current"]["generation"].as_i64(),
            crd: crd["metadata"]["generation"].as_i64(),
            outside: Vec::new(),
            versions: [deployed, object].map(|object| object["metadata"]["resourceVersion"].clone()),
        })
    }
}

impl OperationClients {
    /// Stops the clients; fails if a request failed.
    pub(super) async fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::None => {}
            Self::Load(load) => {
                load.at_least(20).await?;
                traffic::finish(load).await?;
            }
            Self::LoadAtNewest(load, states) => {
                load.at_least(20).await?;
                let report = traffic::finish(load).await?;
                report.check_served(traffic::NEWEST, &states)?;
            }
            Self::Visits(visits) => {
                visits.finish().await?;
            }
        }
        Ok(())
    }
}
