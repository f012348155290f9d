//! `windlass status`: the installed bundles and their state.

use std::process::ExitCode;

use anyhow::bail;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use windlass_api::{BundleDeployment, BundleDeploymentStatus, Conditions};
use windlass_cluster::kinds;
use windlass_object::{
    age::{age, until},
    text::OneLine,
};

use super::{
    arguments,
    cluster::{ClusterArgs, decode, explain_error, list},
    history::table_of,
    missing_rights,
};
use crate::terminal::{Format, Table, print};

/// Shows the installed bundles, or the details of one.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a BundleDeployment [default: all].
    #[arg(value_parser = arguments::bundle_deployment)]
    name: Option<String>,

    /// Only print roles and bindings that grant missing rights, as YAML.
    #[arg(long, requires = "name", conflicts_with = "output")]
    missing_rights: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A BundleDeployment, for structured output.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    namespace: String,
    watch_namespaces: Vec<String>,
    created: Option<Timestamp>,
    generation: Option<i64>,
    /// Whether the operator reports the current generation as ready.
    ready: bool,
    #[serde(flatten)]
    status: BundleDeploymentStatus,
}

impl Args {
    /// Prints the status.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or the BundleDeployment does not exist.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let now = Timestamp::now();
        let Some(name) = self.name else {
            let listed = list(&cluster, &kinds::BUNDLE_DEPLOYMENT, None).await?;
            let entries: Vec<_> = listed.into_iter().map(Entry::from_deployment).collect();
            print(self.output, &entries, || overview(&entries, now))?;
            return Ok(ExitCode::SUCCESS);
        };
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &name);
        let Some(object) = cluster.read(&key).await.map_err(explain_error)? else {
            bail!("{key} not found");
        };
        let deployment = decode(object)?;
        if self.missing_rights {
            print!("{}", missing_rights::documents(&deployment)?);
            return Ok(ExitCode::SUCCESS);
        }
        let entry = Entry::from_deployment(deployment);
        print(self.output, &entry, || entry.details(now))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Entry {
    fn from_deployment(deployment: BundleDeployment) -> Self {
        let ready = deployment.is_ready();
        let BundleDeployment {
            metadata,
            spec,
            status,
        } = deployment;
        let status = status.unwrap_or_default();
        Self {
            name: metadata.name.unwrap_or_default(),
            namespace: spec.namespace,
            watch_namespaces: spec.watch_namespaces,
            created: metadata.creation_timestamp.map(|time| time.0),
            generation: metadata.generation,
            ready,
            status,
        }
    }

    fn bundle(&self) -> &str {
        let installed = self.status.installed.as_ref();
        installed.map_or("", |installed| &installed.bundle.name)
    }

    /// Returns the installed revision and its availability.
    fn installed(&self) -> String {
        let installed = self.status.installed.as_ref();
        installed.map_or_else(String::new, ToString::to_string)
    }

    /// Returns the next revision, and why it is not installed yet.
    fn next(&self) -> String {
        let Some(next) = &self.status.next else {
            return String::new();
        };
        let name = next.name.as_deref().unwrap_or("an invalid bundle");
        let revision = next.revision.map(|revision| format!(" (revision {revision})"));
        format!("{name}{}: {}", revision.unwrap_or_default(), next.reason)
    }

    /// Returns the next bundle of the catalog, and what it waits for.
    fn catalog(&self) -> String {
        let catalog = self.status.catalog.as_ref();
        let Some((catalog, channel)) = catalog.and_then(|catalog| Some((catalog, catalog.channel.as_ref()?)))
        else {
            return String::new();
        };
        let Some(next) = catalog.path.first() else {
            return format!("channel {channel}: no newer bundle");
        };
        let rest = match catalog.path.len() as u64 - 1 + catalog.more {
            0 => String::new(),
            rest => format!(", and {rest} more"),
        };
        let waits = match catalog.waiting_for_approval {
            true => format!("; run windlass catalog approve {} {}", self.name, next.version),
            false => String::new(),
        };
        format!("channel {channel}: {} ({}){rest}{waits}", next.name, next.because)
    }

    /// Returns how many conversions and webhooks are armed, and how many there are.
    fn armed(&self) -> String {
        let (armed, all) = self.status.count_armed();
        format!("{armed}/{all}")
    }

    /// Returns the message of the Ready condition.
    fn message(&self) -> String {
        if self.status.observed_generation != self.generation {
            return "the operator has not reported a status yet".to_owned();
        }
        if let Some(paused) = self
            .status
            .conditions
            .find("Paused")
            .filter(|paused| paused.status == "True")
        {
            return format!("{}: {}", paused.reason, paused.message);
        }
        match self.status.conditions.find("Ready") {
            Some(ready) if self.ready => ready.message.clone(),
            Some(ready) => format!("{}: {}", ready.reason, ready.message),
            None => String::new(),
        }
    }

    fn details(&self, now: Timestamp) -> String {
        let watched = match self.watch_namespaces.as_slice() {
            [] => "all namespaces".to_owned(),
            some => some.join(", "),
        };
        let mut facts = vec![
            ("Name", self.name.clone()),
            ("Installed", self.installed()),
            ("Next", self.next()),
            ("Catalog", self.catalog()),
            ("Namespace", self.namespace.clone()),
            ("Watches", watched),
            (
                "Ready",
                format!("{}: {}", if self.ready { "yes" } else { "no" }, self.message()),
            ),
        ];
        facts.retain(|(_, fact)| !fact.is_empty());
        let facts: String = facts
            .iter()
            .map(|(name, fact)| format!("{:<10} {}\n", format!("{name}:"), OneLine(fact)))
            .collect();

        let tables = [
            self.conditions(now),
            self.webhooks(),
            self.certificates(now),
            table_of(&self.status),
        ];
        let tables: String = tables
            .iter()
            .flatten()
            .map(|table| format!("\n{table}"))
            .collect();
        format!("{facts}{tables}")
    }

    /// Returns a line for each condition; `None` if there are none.
    fn conditions(&self, now: Timestamp) -> Option<Table> {
        let mut table = Table::new(&["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"]);
        for condition in &self.status.conditions {
            table.add([
                &condition.type_,
                &condition.status,
                &age(condition.last_transition_time.0, now),
                &condition.reason,
                &condition.message,
            ]);
        }
        (!self.status.conditions.is_empty()).then_some(table)
    }

    /// Returns a line for each conversion, webhook configuration, ExtensionConfig and APIService; `None` if
    /// there are none.
    fn webhooks(&self) -> Option<Table> {
        let mut table = Table::new(&["WEBHOOK", "TYPE", "STATE"]);
        for conversion in &self.status.conversions {
            table.add([
                &conversion.crd,
                &"ConversionWebhook",
                &format!("{:?}", conversion.state),
            ]);
        }
        for webhook in &self.status.webhooks {
            table.add([
                &webhook.name,
                &webhook.webhook_type,
                &format!("{:?}", webhook.state),
            ]);
        }
        let is_empty = self.status.conversions.is_empty() && self.status.webhooks.is_empty();
        (!is_empty).then_some(table)
    }

    /// Returns a line for each certificate; `None` if there are none.
    fn certificates(&self, now: Timestamp) -> Option<Table> {
        let mut table = Table::new(&["CERTIFICATE", "UNTIL", "RENEWAL"]);
        for certificate in &self.status.certificates {
            let moment =
                |time: &Option<Time>| time.as_ref().map_or_else(String::new, |time| until(time.0, now));
            table.add([
                &format!("{}/{}", self.namespace, certificate.name),
                &moment(&certificate.not_after),
                &moment(&certificate.renewal_time),
            ]);
        }
        (!self.status.certificates.is_empty()).then_some(table)
    }
}

fn overview(entries: &[Entry], now: Timestamp) -> String {
    if entries.is_empty() {
        return "No BundleDeployments found\n".to_owned();
    }
    let mut table = Table::new(&["NAME", "BUNDLE", "NAMESPACE", "ARMED", "READY", "AGE", "STATUS"]);
    for entry in entries {
        let created = entry.created.map(|created| age(created, now));
        table.add([
            &entry.name,
            &entry.bundle(),
            &entry.namespace,
            &entry.armed(),
            &if entry.ready { "True" } else { "False" },
            &created.unwrap_or_default(),
            &entry.message(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn entry(message: &str) -> Entry {
        let condition = |name: &str, status: &str| {
            json!({"type": name, "status": status, "reason": "Ready", "message": message,
                "lastTransitionTime": "2026-11-21T11:58:00Z"})
        };
        let deployment = serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment",
            "metadata": {"name": "argocd-operator", "generation": 1, "creationTimestamp": "2026-11-20T12:00:00Z"},
            "spec": {"namespace": "argocd-operator-system", "source": {"configMaps": [{"name": "x"}]}},
            "status": {
                "observedGeneration": 1,
                "installed": {"revision": 2, "package": "argocd-operator", "name": "argocd-operator.v0.10.1",
                    "version": "0.10.1", "digest": "sha256:0", "healthy": true},
                "next": {"name": "argocd-operator.v0.9.0", "version": "0.9.0", "reason": "Downgrade",
                    "message": "older"},
                "history": [{"revision": 1, "package": "argocd-operator", "name": "argocd-operator.v0.10.0",
                    "version": "0.10.0", "digest": "sha256:1"}],
                "conversions": [{"crd": "argocds.argoproj.io", "state": "Armed"}],
                "webhooks": [{"name": "v.argocd", "type": "ValidatingAdmissionWebhook", "state": "Disarmed"}],
                "certificates": [{"name": "argocd-operator-webhook-service", "notAfter": "2027-02-19T12:00:00Z"}],
                "conditions": [condition("Accepted", "True"), condition("Ready", "True")],
            },
        }));
        Entry::from_deployment(deployment.unwrap())
    }

    #[test]
    fn the_overview_has_one_line_per_bundle_deployment() {
        insta::assert_snapshot!(overview(&[entry("installed, available and armed")], now()));
    }

    #[test]
    fn a_paused_bundle_deployment_is_shown_as_paused() {
        let mut entry = entry("installed, available and armed");
        let paused = serde_json::from_value(json!({
            "type": "Paused", "status": "True", "reason": "Paused", "message": "by an annotation",
            "lastTransitionTime": "2026-11-21T11:58:00Z",
        }));
        entry.status.conditions.push(paused.unwrap());
        assert!(overview(std::slice::from_ref(&entry), now()).contains("Paused: by an annotation"));
        assert!(entry.details(now()).contains("Paused: by an annotation"));
    }

    #[test]
    fn details_list_certificates_and_trust() {
        insta::assert_snapshot!(entry("installed, available and armed").details(now()));
    }

    #[test]
    fn structured_output_has_the_api_fields() {
        insta::assert_json_snapshot!(entry("installed, available and armed"));
    }

    #[test]
    fn a_hostile_message_cannot_break_the_table() {
        let entry = entry("\u{1b}[2Jone\ntwo\u{202e}");
        for text in [
            overview(std::slice::from_ref(&entry), now()),
            entry.details(now()),
        ] {
            assert!(text.contains("\\u{1b}[2Jone\\ntwo\\u{202e}"), "{text}");
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
        }
    }
}
