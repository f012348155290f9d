//! `windlass hooks describe`: the contract of a hook, or the handlers of an extension.

use std::process::ExitCode;

use anyhow::bail;
use runtime_hooks::{
    Catalog,
    catalog::HookDefinition,
    registry::{ExtensionConfig, RegisteredHandler},
};
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::known_configs::KnownConfigs;
use crate::{
    commands::{cluster::ClusterArgs, connect::connect},
    terminal::{Format, print, yaml},
};

/// Describes a hook (without a cluster), an ExtensionConfig, or a handler.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// HOOK, EXTENSIONCONFIG or HANDLER.EXTENSIONCONFIG.
    #[arg(value_name = "NAME")]
    name: String,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Args {
    /// Prints the description.
    ///
    /// # Errors
    ///
    /// When the name is unknown.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let described = match hooks(&self.name) {
            hooks if !hooks.is_empty() => Value::Array(hooks),
            _ => {
                let client = connect(self.cluster.kubeconfig()).await?;
                let known = KnownConfigs::read(&client).await?;
                let Some(described) = in_cluster(&known, &self.name)? else {
                    bail!(
                        "{:?} is not a hook, ExtensionConfig or handler: to list all, run windlass hooks list, or windlass hooks openapi for hooks",
                        self.name
                    );
                };
                described
            }
        };
        let text = yaml::document(&described)?;
        print(self.output, &described, || text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns every version of a hook.
fn hooks(name: &str) -> Vec<Value> {
    Catalog::cluster_api().named(name).map(hook).collect()
}

fn hook(hook: &HookDefinition) -> Value {
    let metadata = hook.metadata();
    let mut schemas = SchemaGenerator::default();
    let request = hook.request_schema(&mut schemas);
    let response = hook.response_schema(&mut schemas);
    json!({
        "hook": hook.reference().hook,
        "apiVersion": hook.reference().api_version,
        "summary": metadata.summary,
        "description": metadata.description,
        "deprecated": metadata.deprecated,
        "idempotent": metadata.idempotent,
        "path": match metadata.singleton {
            true => hook.reference().path(),
            false => format!("{}/HANDLER", hook.reference().path()),
        },
        "request": request,
        "response": response,
        "schemas": schemas.take_definitions(true),
    })
}

fn in_cluster(known: &KnownConfigs, name: &str) -> anyhow::Result<Option<Value>> {
    if let Some(config) = known.find(name) {
        let handlers = known.registry.handlers()?;
        let handlers = handlers.iter().filter(|handler| handler.config.name == name);
        let mut described = match ExtensionConfig::read(config) {
            Ok(read) => json!({
                "extensionConfig": name,
                "server": format!("https://{}{}", read.server.authority(), read.server.prefix()),
                "caBundle": if read.server.ca_bundle().is_empty() { "none" } else { "set" },
                "namespaceSelector": read.namespace_selector,
                "settings": read.settings,
            }),
            Err(error) => json!({ "extensionConfig": name, "invalid": error.to_string() }),
        };
        described["problem"] = known.problem(name).into();
        described["conditions"] = config.pointer("/status/conditions").cloned().unwrap_or_default();
        described["handlers"] = handlers.map(|handler| self::handler(handler)).collect();
        return Ok(Some(described));
    }
    let handler = known.registry.get(name)?;
    Ok(handler.map(|handler| {
        let mut described = self::handler(&handler);
        described["settings"] = json!(handler.config.settings);
        described["problem"] = known.problem(&handler.config.name).into();
        described
    }))
}

fn handler(handler: &RegisteredHandler) -> Value {
    let catalog = Catalog::cluster_api();
    let deprecated = catalog.get(&handler.hook).map(|hook| hook.metadata().deprecated);
    json!({
        "handler": handler.name,
        "hook": handler.hook.hook,
        "apiVersion": handler.hook.api_version,
        "known": deprecated.is_some(),
        "deprecated": deprecated.unwrap_or_default(),
        "timeoutSeconds": handler.timeout.as_secs(),
        "failurePolicy": handler.failure_policy.as_str(),
        "url": format!("https://{}{}", handler.config.server.authority(), handler.path()),
        "namespaceSelector": handler.config.namespace_selector,
    })
}

#[cfg(test)]
mod tests {
    use windlass_object::object;

    use super::*;

    #[test]
    fn a_hook_is_described_without_a_cluster() {
        let described = &hooks("BeforeClusterCreate")[0];
        assert_eq!(
            object::text(described, "/path"),
            Some("/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/HANDLER")
        );
        assert!(described["schemas"]["BeforeClusterCreateRequest"]["properties"]["cluster"].is_object());
        assert!(hooks("beforeclustercreate").is_empty());
    }

    #[test]
    fn an_extension_config_is_described_with_its_handlers() {
        let config = json!({
            "metadata": {"name": "ext1", "generation": 1},
            "spec": {"clientConfig": {"url": "https://example.com/x", "caBundle": "YQ=="}, "settings": {"a": "b"}},
            "status": {
                "conditions": [{"type": "Discovered", "status": "True", "observedGeneration": 1}],
                "handlers": [{
                    "name": "first.ext1",
                    "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"},
                }],
            },
        });
        let known = KnownConfigs::from_objects(vec![config]);
        let url = "https://example.com/x/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/first";
        let described = in_cluster(&known, "ext1").unwrap().unwrap();
        assert_eq!(described["handlers"][0]["url"], url);
        assert_eq!(described["problem"], Value::Null);
        let described = in_cluster(&known, "first.ext1").unwrap().unwrap();
        assert_eq!(
            (&described["url"], &described["settings"]),
            (&json!(url), &json!({"a": "b"}))
        );
        assert_eq!(in_cluster(&known, "first.ext2").unwrap(), None);
    }
}
