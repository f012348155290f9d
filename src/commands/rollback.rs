//! `windlass rollback`: installs an earlier revision again.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use windlass_api::BundleDeployment;
use windlass_cluster::{Cluster, kinds};
use windlass_object::{
    ObjectKey, names, object,
    patch::{guarded, release},
    text::OneLine,
};
use windlass_operator::install::revision::{Ledger, RevisionRecord, decode};

use super::{
    arguments,
    cluster::{ClusterArgs, OperatorArgs, explain_error},
    install::{Watched, change_verb, explain_namespace_error, summary},
    uninstall::not_found_message,
    wait::{WaitArgs, wait_for_object},
};
use crate::terminal::Progress;

const AFTER_HELP: &str =
    "Sets the source and the settings of the BundleDeployment; a tool that applies the BundleDeployment
reverts that. Is refused if the revision lacks a version in which objects are stored.

Examples:
  windlass rollback widgets
  windlass rollback widgets --to 3      also gives up an unfinished upgrade, if 3 is installed";

/// Installs an earlier revision again, with its bundle and its settings.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Revision in `windlass history` [default: the one before the installed one].
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    to: Option<i64>,

    #[command(flatten)]
    waiting: WaitArgs,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Args {
    /// Rolls back.
    ///
    /// # Errors
    ///
    /// When the revision does not exist, or the cluster rejects the write.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &self.name);
        let Some(before) = cluster.read(&key).await.map_err(explain_error)? else {
            bail!("{}", not_found_message(&cluster, &key).await?);
        };
        if object::is_terminating(&before) {
            bail!("{key} is being deleted");
        }
        let namespace = &self.operator.operator_namespace;
        let ledger = read_ledger(&cluster, namespace, &before).await?;
        let record = choose_revision(&key, &ledger, &before, self.to)?;
        check_bundle(&cluster, namespace, record).await?;

        let mut progress = Progress::new(self.waiting.output);
        let written = restore_spec(&cluster, &key, &before, record).await?;
        progress.done(&format!(
            "{} {key}: {} as in revision {}",
            change_verb(Some(&before), &written),
            OneLine(&record.bundle.name),
            record.number
        ));
        if !self.waiting.wait {
            return Ok(ExitCode::SUCCESS);
        }
        let mut watched = Watched::new(Some(&before), &written, namespace);
        let judge = |object: Option<&Value>, after| watched.judge(object, after);
        let patience = self.waiting.timeout;
        let installed =
            wait_for_object::<BundleDeployment, _>(&cluster, &key, patience, &mut progress, judge).await?;
        progress.finish(&summary(&installed), json!({ "object": installed }));
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads the revision records of a BundleDeployment.
async fn read_ledger(cluster: &Cluster, namespace: &str, deployment: &Value) -> anyhow::Result<Ledger> {
    let text = |pointer| object::text(deployment, pointer).unwrap_or_default();
    let selector = format!("{}={}", names::REVISION_OF, text("/metadata/name"));
    let listed = cluster
        .list(&kinds::CONFIG_MAP, Some(namespace), Some(&selector))
        .await
        .map_err(|error| explain_namespace_error(namespace, error))?;
    let is_own = |config_map: &&Value| {
        object::items(config_map, "/metadata/ownerReferences")
            .iter()
            .any(|owner| object::text(owner, "/uid") == Some(text("/metadata/uid")))
    };
    // The operator logs unreadable records.
    let records = listed
        .iter()
        .filter(is_own)
        .filter_map(|config_map| decode(config_map).ok());
    Ok(Ledger::new(records.collect()))
}

/// Returns the revision to roll back to.
fn choose_revision<'a>(
    key: &ObjectKey,
    ledger: &'a Ledger,
    deployment: &Value,
    to: Option<i64>,
) -> anyhow::Result<&'a RevisionRecord> {
    let installed = deployment
        .pointer("/status/installed/revision")
        .and_then(Value::as_i64);
    let there: Vec<_> = ledger
        .records()
        .iter()
        .filter(|record| record.installed)
        .map(|record| record.number.to_string())
        .collect();
    let Some(number) = to else {
        return ledger.before(installed).with_context(|| match installed {
            Some(installed) => format!("{key} has no revision before the installed one, {installed}"),
            None => format!("{key} has no installed revision: use windlass install"),
        });
    };
    match ledger.find(number) {
        Some(record) if record.installed => Ok(record),
        Some(_) => bail!(
            "revision {number} of {key} was never installed completely; {}",
            available_revisions(&there)
        ),
        None => bail!("{key} has no revision {number}; {}", available_revisions(&there)),
    }
}

fn available_revisions(there: &[String]) -> String {
    match there {
        [] => "no revision is recorded".to_owned(),
        some => format!("available: {}", some.join(", ")),
    }
}

/// Checks that the bundle of a revision still exists.
async fn check_bundle(cluster: &Cluster, namespace: &str, record: &RevisionRecord) -> anyhow::Result<()> {
    for name in &record.config_maps {
        let key = kinds::CONFIG_MAP.object(Some(namespace), name);
        let there = cluster.read(&key).await;
        if there
            .map_err(|error| explain_namespace_error(namespace, error))?
            .is_none()
        {
            bail!(
                "the bundle of revision {} is missing: {key} not found; install {} again with windlass install",
                record.number,
                OneLine(&record.bundle.name)
            );
        }
    }
    Ok(())
}

/// Sets the spec to that of the revision in one write. No field manager owns the fields afterwards, so that
/// the next install can apply them.
async fn restore_spec(
    cluster: &Cluster,
    key: &ObjectKey,
    before: &Value,
    record: &RevisionRecord,
) -> anyhow::Result<Value> {
    let spec = spec_at_revision(&before["spec"], record)?;
    if spec == before["spec"] {
        return Ok(before.clone());
    }
    let guards = [
        ("/metadata/uid", &before["metadata"]["uid"]),
        ("/spec", &before["spec"]),
    ];
    let patch = guarded(&guards, "/spec", &spec);
    let patched = cluster.patch(key, &patch, names::COMMAND).await;
    let written = patched.map_err(|error| {
        if error.is_invalid() {
            anyhow::anyhow!(
                "{}; if {key} was changed at the same time, try again",
                explain_error(error)
            )
        } else {
            explain_error(error)
        }
    })?;
    if let Some(patch) = release(&written, names::COMMAND) {
        let released = cluster.patch(key, &patch, names::COMMAND).await;
        released.map_err(explain_error)?;
    }
    Ok(written)
}

/// Returns `spec` with the bundle and the settings of a revision.
fn spec_at_revision(spec: &Value, record: &RevisionRecord) -> anyhow::Result<Value> {
    let mut changed = spec.clone();
    let config_maps: Vec<_> = record
        .config_maps
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let settings = serde_json::to_value(&record.settings).context("cannot write the settings")?;
    let fields = changed
        .as_object_mut()
        .context("the BundleDeployment has no spec")?;
    for field in [
        "watchNamespaces",
        "config",
        "certificates",
        "conversion",
        "allowBlockingWebhooks",
    ] {
        match settings.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.shift_remove(field),
        };
    }
    let mut source = json!({ "configMaps": config_maps });
    // A pinned source stays pinned.
    if spec["source"].get("digest").is_some() {
        source["digest"] = json!(record.bundle.digest);
    }
    fields.insert("source".to_owned(), source);
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use windlass_api::{BundleStatus, CertificateDefaults, Source};
    use windlass_operator::install::revision::{InstallSettings, RevisionInventory};

    use super::*;

    fn record(number: i64, installed: bool) -> RevisionRecord {
        RevisionRecord {
            number,
            bundle: BundleStatus::default(),
            source: Source::default(),
            image: None,
            settings: InstallSettings {
                namespace: "ns".to_owned(),
                watch_namespaces: vec!["a".to_owned()],
                config: None,
                certificates: CertificateDefaults::default(),
                conversion: windlass_api::ConversionManager::Managed,
                allow_blocking_webhooks: false,
                overrides: Vec::new(),
            },
            config_maps: vec!["name-0".to_owned()],
            installed,
            inventory: RevisionInventory::default(),
        }
    }

    #[test]
    fn only_installed_revisions_can_be_rolled_back_to() {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, "name");
        let ledger = Ledger::new(vec![record(1, true), record(2, false), record(3, true)]);
        let deployment = json!({"status": {"installed": {"revision": 3}}});
        let chosen = |to| match choose_revision(&key, &ledger, &deployment, to) {
            Ok(record) => record.number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(chosen(None), "1");
        assert_eq!(chosen(Some(3)), "3");
        assert_eq!(
            chosen(Some(2)),
            "revision 2 of BundleDeployment name was never installed completely; available: 1, 3"
        );
        assert_eq!(
            chosen(Some(9)),
            "BundleDeployment name has no revision 9; available: 1, 3"
        );
        let first = Ledger::new(vec![record(3, true)]);
        let error = choose_revision(&key, &first, &deployment, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "BundleDeployment name has no revision before the installed one, 3"
        );
    }

    #[test]
    fn a_rollback_restores_the_bundle_and_its_settings_only() {
        let spec = json!({
            "namespace": "ns", "source": {"directory": {"path": "d"}}, "config": {"env": []}, "allowDowngrade": true,
        });
        let changed = spec_at_revision(&spec, &record(1, true)).unwrap();
        assert_eq!(changed["source"], json!({"configMaps": [{"name": "name-0"}]}));
        assert_eq!(changed["watchNamespaces"], json!(["a"]));
        assert_eq!(
            (changed.get("config"), &changed["allowDowngrade"]),
            (None, &json!(true))
        );
        assert_eq!(spec_at_revision(&changed, &record(1, true)).unwrap(), changed);
    }
}
