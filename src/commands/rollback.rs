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
    cluster::{ClusterArgs, OperatorArgs, explained},
    follow::{WaitArgs, follow},
    install::{Watched, done, explained_in, summary},
    uninstall::absent,
};
use crate::terminal::Progress;

/// Installs an earlier revision again: its bundle, from where the operator has recorded it, with its settings.
///
/// Sets spec.source, watchNamespaces, config, certificates and conversion of the BundleDeployment; a tool that applies the
/// BundleDeployment from elsewhere will undo that. Needs no allowDowngrade, but is refused if the revision lacks a version
/// in which objects are stored. To give up an upgrade that does not get through, set --to to the installed revision. Prints
/// progress, and exits 0 when every webhook is proven and armed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the BundleDeployment.
    #[arg(value_parser = arguments::bundle_deployment)]
    name: String,

    /// Revision to go back to, as `windlass history` numbers it [default: the one before the installed one].
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    to: Option<i64>,

    #[command(flatten)]
    waiting: WaitArgs,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

// === impl Args ===

impl Args {
    /// Goes back.
    ///
    /// # Errors
    ///
    /// When there is no such revision, or the cluster does not take it.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &self.name);
        let Some(before) = cluster.read(&key).await.map_err(explained)? else {
            bail!("{}", absent(&cluster, &key).await?);
        };
        if object::is_terminating(&before) {
            bail!("{key} is being deleted");
        }
        let namespace = &self.operator.operator_namespace;
        let ledger = ledger(&cluster, namespace, &before).await?;
        let record = chosen(&key, &ledger, &before, self.to)?;
        check_bundle(&cluster, namespace, record).await?;

        let mut progress = Progress::new(self.waiting.output);
        let written = set(&cluster, &key, &before, record).await?;
        progress.done(&format!(
            "{} {key}: {} as in revision {}",
            done(Some(&before), &written),
            OneLine(&record.bundle.name),
            record.number
        ));
        if !self.waiting.wait {
            return Ok(ExitCode::SUCCESS);
        }
        let mut watched = Watched::new(Some(&before), &written, namespace);
        let judge = |object: Option<&Value>, after| watched.judge(object, after);
        let patience = self.waiting.timeout;
        let installed = follow::<BundleDeployment, _>(&cluster, &key, patience, &mut progress, judge).await?;
        progress.finish(&summary(&installed), json!({ "object": installed }));
        Ok(ExitCode::SUCCESS)
    }
}

/// The records of a BundleDeployment.
async fn ledger(cluster: &Cluster, namespace: &str, deployment: &Value) -> anyhow::Result<Ledger> {
    let text = |pointer| object::text(deployment, pointer).unwrap_or_default();
    let selector = format!("{}={}", names::REVISION_OF, text("/metadata/name"));
    let listed = cluster
        .list(&kinds::CONFIG_MAP, Some(namespace), Some(&selector))
        .await
        .map_err(|error| explained_in(namespace, error))?;
    let is_own = |config_map: &&Value| {
        object::items(config_map, "/metadata/ownerReferences")
            .iter()
            .any(|owner| object::text(owner, "/uid") == Some(text("/metadata/uid")))
    };
    // The operator says in its log which it cannot read.
    let records = listed
        .iter()
        .filter(is_own)
        .filter_map(|config_map| decode(config_map).ok());
    Ok(Ledger::new(records.collect()))
}

/// The revision to go back to.
fn chosen<'a>(
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
            Some(installed) => format!("{key} has no revision before {installed}, which is installed"),
            None => format!("{key} has no revision that was installed: use windlass install"),
        });
    };
    match ledger.find(number) {
        Some(record) if record.installed => Ok(record),
        Some(_) => bail!(
            "revision {number} of {key} was never installed completely; {}",
            choice(&there)
        ),
        None => bail!("{key} has no revision {number}; {}", choice(&there)),
    }
}

fn choice(there: &[String]) -> String {
    match there {
        [] => "no revision is recorded".to_owned(),
        some => format!("there are {}", some.join(", ")),
    }
}

/// Whether the bytes of the bundle are there.
async fn check_bundle(cluster: &Cluster, namespace: &str, record: &RevisionRecord) -> anyhow::Result<()> {
    for name in &record.config_maps {
        let key = kinds::CONFIG_MAP.object(Some(namespace), name);
        let there = cluster.read(&key).await;
        if there.map_err(|error| explained_in(namespace, error))?.is_none() {
            bail!(
                "the bundle of revision {} is lost: {key} not found; install {} with windlass install",
                record.number,
                OneLine(&record.bundle.name)
            );
        }
    }
    Ok(())
}

/// Makes the spec what it was in the revision. It is one write; the fields belong to nobody afterwards, so that the next
/// install can apply them.
async fn set(
    cluster: &Cluster,
    key: &ObjectKey,
    before: &Value,
    record: &RevisionRecord,
) -> anyhow::Result<Value> {
    let spec = spec_of(&before["spec"], record)?;
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
                explained(error)
            )
        } else {
            explained(error)
        }
    })?;
    if let Some(patch) = release(&written, names::COMMAND) {
        let released = cluster.patch(key, &patch, names::COMMAND).await;
        released.map_err(explained)?;
    }
    Ok(written)
}

/// `spec` with the bundle and the settings of a revision.
fn spec_of(spec: &Value, record: &RevisionRecord) -> anyhow::Result<Value> {
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
    // What was pinned stays pinned.
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
    fn it_goes_back_only_to_what_was_installed() {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, "name");
        let ledger = Ledger::new(vec![record(1, true), record(2, false), record(3, true)]);
        let deployment = json!({"status": {"installed": {"revision": 3}}});
        let chosen = |to| match chosen(&key, &ledger, &deployment, to) {
            Ok(record) => record.number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(chosen(None), "1");
        assert_eq!(chosen(Some(3)), "3");
        assert_eq!(
            chosen(Some(2)),
            "revision 2 of BundleDeployment name was never installed completely; there are 1, 3"
        );
        assert_eq!(
            chosen(Some(9)),
            "BundleDeployment name has no revision 9; there are 1, 3"
        );
        let first = Ledger::new(vec![record(3, true)]);
        let error = super::chosen(&key, &first, &deployment, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "BundleDeployment name has no revision before 3, which is installed"
        );
    }

    #[test]
    fn the_spec_gets_the_bundle_and_the_settings_and_keeps_the_rest() {
        let spec = json!({
            "namespace": "ns", "source": {"directory": {"path": "d"}}, "config": {"env": []}, "allowDowngrade": true,
        });
        let changed = spec_of(&spec, &record(1, true)).unwrap();
        assert_eq!(changed["source"], json!({"configMaps": [{"name": "name-0"}]}));
        assert_eq!(changed["watchNamespaces"], json!(["a"]));
        assert_eq!(
            (changed.get("config"), &changed["allowDowngrade"]),
            (None, &json!(true))
        );
        assert_eq!(spec_of(&changed, &record(1, true)).unwrap(), changed);
    }
}
