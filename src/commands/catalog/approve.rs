//! `windlass catalog approve`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::{BundleDeployment, CatalogStep};
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, names, text::OneLine};

use crate::commands::{
    annotation_request::annotate,
    arguments,
    cluster::{ClusterArgs, decode},
};

const AFTER_HELP: &str =
    "Only this bundle is approved, in the image that the catalog names now. If another bundle becomes the
next one, it waits for its own approval.";

/// Approves the next bundle of a catalog that a BundleDeployment follows with approval: Manual.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Expected version or name of the next bundle [default: any].
    version: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Args {
    /// Approves the next bundle.
    ///
    /// # Errors
    ///
    /// When no bundle waits for an approval, or the next one is not the expected one.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &self.name);
        let version = self.version.as_deref();
        let now = Timestamp::now();
        annotate(&cluster, &key, "windlass status", |live| {
            let next = next(&key, live, version)?;
            Ok(json!({ names::APPROVE: approval(&next, now) }))
        })
        .await?;
        eprintln!(
            "Approved the next bundle of {key}; to see its progress, run windlass status {}",
            self.name
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the bundle that waits for an approval.
fn next(key: &ObjectKey, live: &Value, version: Option<&str>) -> anyhow::Result<CatalogStep> {
    let deployment: BundleDeployment = decode(live.clone())?;
    if deployment.spec.source.catalog.is_none() {
        bail!("{key} does not follow a catalog: set spec.source.catalog");
    }
    let status = deployment.status.unwrap_or_default();
    if status.observed_generation != deployment.metadata.generation {
        bail!("the operator has not processed the last change of {key} yet: try again");
    }
    let catalog = status.catalog.filter(|catalog| catalog.waiting_for_approval);
    let next = catalog.and_then(|catalog| catalog.path.into_iter().next());
    let next = next.with_context(|| {
        format!(
            "no bundle waits for an approval: see windlass status {}",
            key.name
        )
    })?;
    if version.is_some_and(|version| version != next.version && version != next.name) {
        bail!(
            "{} is not the next bundle of {key}, which is {} ({})",
            OneLine(version.unwrap_or_default()),
            OneLine(&next.name),
            OneLine(&next.version)
        );
    }
    Ok(next)
}

/// Returns the value of the annotation. Each value approves one bundle once, so it contains the time.
fn approval(next: &CatalogStep, now: Timestamp) -> String {
    let digest = next.digest.as_ref().map(|digest| format!("@{digest}"));
    let at = now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    format!("{}{} at {at}", next.name, digest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use windlass_operator::install::following::BundleApproval;

    use super::*;

    fn deployment(waiting: bool, generation: i64) -> Value {
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment",
            "metadata": {"name": "sample", "generation": generation},
            "spec": {"namespace": "n", "source": {"catalog": {"ref": "quay.io/c", "package": "sample"}}},
            "status": {"observedGeneration": 1, "catalog": {"waitingForApproval": waiting, "path": [
                {"name": "sample.v2", "version": "2.0.0", "digest": "sha256:00", "because": "replaces sample.v1"},
                {"name": "sample.v3", "version": "3.0.0", "because": "replaces sample.v2"},
            ]}},
        })
    }

    #[test]
    fn only_the_next_waiting_bundle_can_be_approved() {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, "sample");
        let of = |live: &Value, version| {
            next(&key, live, version)
                .map(|next| next.name)
                .map_err(|error| error.to_string())
        };
        let waiting = deployment(true, 1);
        for version in [None, Some("2.0.0"), Some("sample.v2")] {
            assert_eq!(of(&waiting, version).unwrap(), "sample.v2");
        }
        let mut directory = waiting.clone();
        directory["spec"]["source"] = json!({"directory": {"path": "a"}});
        for (live, version, words) in [
            (
                &waiting,
                Some("3.0.0"),
                "3.0.0 is not the next bundle of BundleDeployment sample, which is sample.v2 (2.0.0)",
            ),
            (&deployment(false, 1), None, "no bundle waits for an approval"),
            (&deployment(true, 2), None, "has not processed the last change"),
            (&directory, None, "does not follow a catalog"),
        ] {
            let error = of(live, version).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_written_approval_can_be_parsed() {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, "sample");
        let next = next(&key, &deployment(true, 1), None).unwrap();
        let value = approval(&next, Timestamp::UNIX_EPOCH);
        assert_eq!(value, "sample.v2@sha256:00 at 1970-01-01T00:00:00.000Z");
        let read = BundleApproval::parse(&value).unwrap();
        assert_eq!((read.bundle, read.digest), ("sample.v2", Some("sha256:00")));
    }
}
