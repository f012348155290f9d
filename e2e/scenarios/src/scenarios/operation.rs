//! What an operator of bundles does, as something that can be done again and looked at when it is done.

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

/// How many objects are stored when a migration or a removal begins.
const STORED: usize = 4;

/// A namespace that is none of the sample's business, but where widgets are.
const OUTSIDE: &str = "outside";

/// What is in it beside them.
const NEIGHBOUR: &str = "/api/v1/namespaces/outside/configmaps/neighbour";

/// Where the sample's namespace is.
const SYSTEM: &str = "/api/v1/namespaces/sample-system";

/// How often a whole cluster is looked at.
const LOOK: std::time::Duration = std::time::Duration::from_millis(250);

/// How long nothing may change before an operation counts as ended.
pub(super) const QUIET: std::time::Duration = std::time::Duration::from_secs(1);

/// Something that the operator carries out in many writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdminOperation {
    Install,
    Upgrade,
    /// An upgrade to a bundle that differs in what traffic hangs on.
    Change(BundleChange),
    /// An upgrade that moves the storage version.
    Migration,
    LeafRotation,
    CaRotation,
    Removal,
    /// A removal that takes the CRDs with it, and every object.
    RemovalWithCrds,
    /// A removal whose namespace was deleted before, with everything that serves.
    RemovalAfterNamespace,
}

/// What was there before an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// The serving Secret.
    leaf: Value,
    /// The number of the CA that signs.
    authority: Option<i64>,
    /// How often the CRD's spec was written.
    crd: Option<i64>,
    /// The objects in a namespace that is none of the sample's business.
    outside: Vec<Value>,
    /// The resourceVersions of what tells how far an operation is.
    versions: [Value; 2],
}

/// Who uses the sample while an operation goes on.
pub(super) enum Users {
    /// Nothing is installed to be used, or nothing is left that serves.
    Nobody,
    /// Requests through all webhooks.
    Load(Load),
    /// Objects that come and go while webhooks go.
    Visits(Visits),
}

// === impl AdminOperation ===

impl AdminOperation {
    /// Brings the cluster to where the operation begins, from where nothing is installed. The operator must be running.
    pub(super) async fn prepare(self, cluster: &TestCluster) -> anyhow::Result<()> {
        if self == Self::Install {
            return Ok(());
        }
        // Of the newer one another version is preferred than the one that is stored: whatever empties a namespace asks for a
        // conversion.
        let folder = match self {
            Self::RemovalAfterNamespace => cluster.bundle("sample.v2")?,
            Self::Change(change) => cluster.operator.bundle_dir.join(change.older(cluster)?),
            _ => cluster.bundle("sample.v1")?,
        };
        steps::install(&cluster.client, "sample", NAMESPACE, &folder).await?;
        sample::settled(cluster).await?;
        if matches!(
            self,
            Self::Migration | Self::RemovalWithCrds | Self::RemovalAfterNamespace
        ) {
            stored::store(&cluster.client, NAMESPACE, STORED).await?;
        }
        if matches!(self, Self::RemovalWithCrds | Self::RemovalAfterNamespace) {
            traffic::namespace(cluster, OUTSIDE).await?;
            stored::store(&cluster.client, OUTSIDE, STORED).await?;
            let neighbour = json!({"metadata": {"name": "neighbour"}, "data": {"a": "b"}});
            let path = format!("/api/v1/namespaces/{OUTSIDE}/configmaps");
            succeed(&cluster.client, "POST", &path, Some(&neighbour)).await?;
        }
        if self == Self::CaRotation {
            // Every rotation but the first finds the cross certificate of the one before.
            sample::rotate(cluster, "ca").await?;
        }
        Ok(())
    }

    /// Whether it can be done again where it ended.
    pub(super) fn is_repeatable(self) -> bool {
        matches!(self, Self::LeafRotation | Self::CaRotation)
    }

    /// Removes what it installed, where it cannot be done again otherwise. The operator must be running.
    pub(super) async fn undo(self, cluster: &TestCluster) -> anyhow::Result<()> {
        match self {
            Self::Install | Self::Upgrade | Self::Change(_) => {
                delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await
            }
            Self::Migration => {
                // Objects that need their conversion would hold the removal up.
                migration::discard(cluster, NAMESPACE).await?;
                delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await
            }
            _ => Ok(()),
        }
    }

    /// Asks for it.
    pub(super) async fn ask(self, cluster: &TestCluster) -> anyhow::Result<Before> {
        if matches!(self, Self::LeafRotation | Self::CaRotation) {
            // Whether another generation came can be told only where the status says which there was.
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
                before.outside = outside(cluster).await?;
                let policy = json!({"spec": {"deletionPolicy": "DeleteCRDs"}});
                succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&policy)).await?;
                succeed(&cluster.client, "DELETE", sample::BUNDLE_DEPLOYMENT, None).await?;
            }
            Self::RemovalAfterNamespace => {
                before.outside = outside(cluster).await?;
                succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
                succeed(&cluster.client, "DELETE", sample::BUNDLE_DEPLOYMENT, None).await?;
            }
        }
        before.versions = Before::take(cluster).await?.versions;
        Ok(before)
    }

    /// Whether all that a user sees says that it is done.
    pub(super) async fn is_done(self, cluster: &TestCluster, before: &Before) -> anyhow::Result<bool> {
        let now = Before::take(cluster).await?;
        Ok(match self {
            Self::Install | Self::Upgrade | Self::Change(_) | Self::Migration => {
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

    /// What it must have done exactly once, beyond the state in which it ends.
    pub(super) async fn check(self, cluster: &TestCluster, before: &Before) -> anyhow::Result<()> {
        let now = Before::take(cluster).await?;
        if self == Self::Migration {
            migration::is_stored_as(cluster, &["v2"]).await?;
        }
        if self == Self::CaRotation {
            anyhow::ensure!(
                now.authority == before.authority.map(|number| number + 1),
                "one rotation was asked for, the CA went from {:?} to {:?}",
                before.authority,
                now.authority
            );
            anyhow::ensure!(
                now.crd == before.crd.map(|number| number + 1),
                "one rotation was asked for, the CRD's spec went from {:?} to {:?}",
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
            let now = outside(cluster).await?;
            anyhow::ensure!(now == stays, "what is outside was {stays:?}, and is {now:?}");
        }
        if self == Self::LeafRotation {
            anyhow::ensure!(
                now.authority == before.authority && now.crd == before.crd,
                "a renewal of the leaf has touched the CA or a target: {before:?} became {now:?}"
            );
        }
        Ok(())
    }

    /// Starts to use what is installed while it goes on.
    pub(super) async fn users(self, cluster: &TestCluster) -> anyhow::Result<Users> {
        Ok(match self {
            Self::Install | Self::RemovalAfterNamespace => Users::Nobody,
            Self::Removal | Self::RemovalWithCrds => Users::Visits(traffic::visit(cluster).await?),
            _ => Users::Load(traffic::start_slowly(cluster, &["v1", "v1beta1"]).await?),
        })
    }
}

/// Waits until the cluster is as `end` says.
pub(super) async fn ends_as(cluster: &TestCluster, end: &Snapshot) -> anyhow::Result<()> {
    until(
        "the cluster is as after an undisturbed run",
        PATIENCE,
        async || {
            let differences = end.differences(&take(cluster).await?);
            if differences.is_empty() {
                return Ok(Ok(()));
            }
            tokio::time::sleep(LOOK).await;
            Ok(Err(differences.join("\n  ")))
        },
    )
    .await
}

/// The cluster, once nothing changes in it.
pub(super) async fn settled(cluster: &TestCluster) -> anyhow::Result<Snapshot> {
    until("nothing changes any more", PATIENCE, async || {
        let before = take(cluster).await?;
        tokio::time::sleep(QUIET).await;
        let after = take(cluster).await?;
        let mut changes = before.differences(&after);
        changes.extend(after.ending().iter().map(|place| format!("{place} is ending")));
        Ok(if changes.is_empty() {
            Ok(after)
        } else {
            Err(changes.join("\n  "))
        })
    })
    .await
}

/// Whether the operator has begun with what was asked for.
pub(super) async fn has_begun(cluster: &TestCluster, before: &Before) -> anyhow::Result<bool> {
    Ok(Before::take(cluster).await?.versions != before.versions)
}

/// What is in the cluster, but for what its users leave.
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

/// The objects in a namespace that is none of the sample's business.
async fn outside(cluster: &TestCluster) -> anyhow::Result<Vec<Value>> {
    let mut objects: Vec<_> = get(&cluster.client, NEIGHBOUR).await?.into_iter().collect();
    let widgets = sample::widgets(OUTSIDE, "v1");
    let listed = get(&cluster.client, &widgets).await?.unwrap_or_default();
    for mut widget in listed["items"].as_array().cloned().unwrap_or_default() {
        // The items of a list need not say what they are.
        widget["kind"] = json!("Widget");
        objects.push(widget);
    }
    Ok(objects)
}

// === impl Before ===

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

// === impl Users ===

impl Users {
    /// Ends the use; fails if a request failed.
    pub(super) async fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Nobody => {}
            Self::Load(load) => {
                load.at_least(20).await?;
                traffic::finish(load).await?;
            }
            Self::Visits(visits) => {
                visits.finish().await?;
            }
        }
        Ok(())
    }
}
