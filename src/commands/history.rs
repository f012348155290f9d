//! `windlass history`: the revisions of a bundle.

use std::process::ExitCode;

use serde::Serialize;
use windlass_api::{BundleDeployment, BundleDeploymentStatus, BundleRevision, BundleStatus, NextRevision};
use windlass_cluster::kinds;

use super::{
    arguments,
    cluster::{ClusterArgs, decode, explain_error},
    uninstall::not_found_message,
};
use crate::terminal::{Format, Table, print};

/// Shows the revisions of a bundle: the next, the installed, and those to roll back to.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The state of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum State {
    /// The revision will be installed next.
    Next,
    /// The revision is installed.
    Installed,
    /// The revision was installed before.
    Earlier,
}

/// A revision, for structured output.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(flatten)]
    revision: BundleRevision,
    state: State,
}

impl Args {
    /// Prints the revisions.
    ///
    /// # Errors
    ///
    /// When they cannot be read, or the BundleDeployment does not exist.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &self.name);
        let Some(object) = cluster.read(&key).await.map_err(explain_error)? else {
            anyhow::bail!("{}", not_found_message(&cluster, &key).await?);
        };
        let deployment: BundleDeployment = decode(object)?;
        let entries = entries(deployment.status.unwrap_or_default());
        print(self.output, &entries, || {
            if entries.is_empty() {
                return format!("{key} has no recorded revision yet\n");
            }
            table(&entries).to_string()
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the revisions, the latest first. A next revision without a number was not accepted and is left
/// out.
fn entries(status: BundleDeploymentStatus) -> Vec<Entry> {
    let next = status.next.and_then(accepted_revision).map(|revision| Entry {
        revision,
        state: State::Next,
    });
    let installed = status.installed.map(|installed| Entry {
        revision: BundleRevision {
            revision: installed.revision,
            bundle: installed.bundle,
            image: installed.image,
        },
        state: State::Installed,
    });
    let earlier = status.history.into_iter().map(|revision| Entry {
        revision,
        state: State::Earlier,
    });
    next.into_iter().chain(installed).chain(earlier).collect()
}

fn accepted_revision(next: NextRevision) -> Option<BundleRevision> {
    Some(BundleRevision {
        revision: next.revision?,
        bundle: BundleStatus {
            package: next.package?,
            name: next.name?,
            version: next.version?,
            digest: next.digest?,
        },
        image: next.image,
    })
}

/// Returns a table of the revisions; `None` if there are none.
pub(super) fn table_of(status: &BundleDeploymentStatus) -> Option<Table> {
    let entries = entries(status.clone());
    (!entries.is_empty()).then(|| table(&entries))
}

fn table(entries: &[Entry]) -> Table {
    let mut table = Table::new(&["REVISION", "BUNDLE", "VERSION", "STATE", "DIGEST"]);
    for Entry { revision, state } in entries {
        // As many characters of a digest as `git` and `docker` show.
        let digest: String = revision
            .bundle
            .digest
            .chars()
            .take("sha256:".len() + 12)
            .collect();
        table.add([
            &revision.revision.to_string(),
            &revision.bundle.name,
            &revision.bundle.version,
            &format!("{state:?}"),
            &digest,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> BundleDeploymentStatus {
        let bundle = |revision: i64| {
            json!({"revision": revision, "package": "argocd-operator", "name": format!("argocd-operator.v0.{revision}.0"),
                "version": format!("0.{revision}.0"), "digest": format!("sha256:{revision:064}")})
        };
        let mut next = bundle(5);
        next["reason"] = json!("CanaryCrashing");
        next["message"] = json!("exit code 1");
        serde_json::from_value(
            json!({"installed": bundle(4), "next": next, "history": [bundle(3), bundle(1)]}),
        )
        .unwrap()
    }

    #[test]
    fn the_latest_revision_comes_first() {
        insta::assert_snapshot!(table(&entries(status())).to_string());
        insta::assert_json_snapshot!(entries(status()));
    }

    #[test]
    fn an_unaccepted_revision_is_not_listed() {
        let mut refused = status();
        refused.next = Some(NextRevision {
            reason: "Downgrade".to_owned(),
            ..NextRevision::default()
        });
        assert_eq!(entries(refused)[0].state, State::Installed);
    }
}
