//! `windlass hooks list`: the registered handlers by hook.

use std::process::ExitCode;

use runtime_hooks::registry::RegisteredHandler;
use serde::Serialize;

use super::known_configs::KnownConfigs;
use crate::{
    commands::{cluster::ClusterArgs, connect::connect},
    terminal::{Format, Table, print},
};

/// Lists registered handlers with their hooks, and unusable ExtensionConfigs with the reason.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only the handlers of this hook, such as BeforeClusterCreate.
    #[arg(value_name = "HOOK")]
    hook: Option<String>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A handler, or an ExtensionConfig without handlers, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    extension_config: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// Why the handler is not called, or not with its current spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Args {
    /// Prints the handlers.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = connect(self.cluster.kubeconfig()).await?;
        let known = KnownConfigs::read(&client).await?;
        let entries = entries(&known, self.hook.as_deref())?;
        print(self.output, &entries, || overview(&entries))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn entries(known: &KnownConfigs, hook: Option<&str>) -> anyhow::Result<Vec<Entry>> {
    let handlers = known.registry.handlers()?;
    let mut entries: Vec<_> = handlers
        .iter()
        .filter(|handler| hook.is_none_or(|hook| handler.hook.hook == hook))
        .map(|handler| Entry::from_handler(handler, known))
        .collect();
    if hook.is_none() {
        for config in known.registry.states().into_keys() {
            if !handlers.iter().any(|handler| handler.config.name == config) {
                entries.push(Entry::without_handlers(&config, known));
            }
        }
    }
    Ok(entries)
}

fn overview(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "No handlers found\n".to_owned();
    }
    let mut table = Table::new(&[
        "HANDLER", "HOOK", "VERSION", "TIMEOUT", "POLICY", "SERVER", "PROBLEM",
    ]);
    for entry in entries {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let timeout = entry.timeout_seconds.map(|seconds| format!("{seconds}s"));
        let version = entry
            .api_version
            .as_deref()
            .map(|version| version.rsplit('/').next().unwrap_or(version));
        table.add([
            &entry
                .handler
                .clone()
                .unwrap_or_else(|| format!("*.{}", entry.extension_config)),
            &text(&entry.hook),
            &version.unwrap_or_default(),
            &text(&timeout),
            &entry.failure_policy.unwrap_or_default(),
            &text(&entry.server),
            &text(&entry.problem),
        ]);
    }
    table.to_string()
}

impl Entry {
    fn from_handler(handler: &RegisteredHandler, known: &KnownConfigs) -> Self {
        Self {
            extension_config: handler.config.name.clone(),
            handler: Some(handler.name.clone()),
            hook: Some(handler.hook.hook.clone()),
            api_version: Some(handler.hook.api_version.clone()),
            timeout_seconds: Some(handler.timeout.as_secs()),
            failure_policy: Some(handler.failure_policy.as_str()),
            server: Some(handler.config.server.authority().to_owned()),
            problem: known.problem(&handler.config.name),
        }
    }

    fn without_handlers(config: &str, known: &KnownConfigs) -> Self {
        Self {
            extension_config: config.to_owned(),
            handler: None,
            hook: None,
            api_version: None,
            timeout_seconds: None,
            failure_policy: None,
            server: None,
            problem: known
                .problem(config)
                .or_else(|| Some("its server has no handlers".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn handlers_and_unusable_extension_configs_are_listed() {
        let config = |name: &str, discovered: &str| {
            json!({
                "metadata": {"name": name, "generation": 1},
                "spec": {"clientConfig": {"service": {"namespace": "n", "name": "s"}, "caBundle": "YQ=="}},
                "status": {
                    "conditions": [{"type": "Discovered", "status": discovered, "observedGeneration": 1, "message": "no answer"}],
                    "handlers": [{
                        "name": format!("first.{name}"), "failurePolicy": "Ignore", "timeoutSeconds": 5,
                        "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"},
                    }],
                },
            })
        };
        let known = KnownConfigs::from_objects(vec![config("good", "True"), config("bad", "False")]);
        let entries_of = |hook| entries(&known, hook).unwrap();
        let shown = overview(&entries_of(None));
        let lines: Vec<_> = shown
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .collect();
        assert_eq!(
            lines[1],
            [
                "first.good",
                "BeforeClusterCreate",
                "v1alpha1",
                "5s",
                "Ignore",
                "s.n.svc:443",
                "-"
            ]
        );
        assert_eq!(lines[2][0], "*.bad");
        assert!(
            entries_of(None)[1]
                .problem
                .as_ref()
                .unwrap()
                .ends_with("ExtensionConfig bad is not discovered: no answer")
        );
        assert_eq!(entries_of(Some("BeforeClusterCreate")).len(), 1);
        assert_eq!(
            overview(&entries_of(Some("GeneratePatches"))),
            "No handlers found\n"
        );
    }
}
