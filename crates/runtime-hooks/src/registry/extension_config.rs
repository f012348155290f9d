//! ExtensionConfigs as callers of their servers read them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use thiserror::Error;
use webhook_transport::{ServerError, ServerReference};
use windlass_object::{
    label_selector::{self, LabelSelectorError},
    object,
    rfc1123::is_label,
};

use crate::{
    HookReference,
    discovery::{FailurePolicy, Handler},
    hook::HookSettings,
};

/// A server of handlers: how to call it, for which namespaces, and with which settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionConfig {
    /// The name, a DNS label.
    pub name: String,
    /// The resourceVersion; empty for an ExtensionConfig that is not in a cluster.
    pub resource_version: String,
    /// The server to call, and the CAs that verify it.
    pub server: ServerReference,
    /// A LabelSelector of namespaces whose objects the handlers are called for; `{}` selects all.
    pub namespace_selector: Value,
    /// The default settings of every request.
    pub settings: HookSettings,
}

/// Why an ExtensionConfig is invalid.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ExtensionConfigError {
    /// A field is invalid.
    #[error("{path}: {problem}")]
    Field {
        /// The path of the field.
        path: &'static str,
        problem: &'static str,
    },
    /// The server cannot be called.
    #[error("spec.clientConfig: {0}")]
    Server(#[from] ServerError),
    /// The namespaceSelector is invalid.
    #[error("spec.namespaceSelector{0}")]
    NamespaceSelector(#[from] LabelSelectorError),
}

/// Why the handlers in an ExtensionConfig's status must not be called (`validateExtensionConfig` of Cluster
/// API's `core/reconcilers/extensionconfig`).
#[derive(Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum NotDiscoveredError {
    /// There is no trust bundle.
    #[error("caBundle is not set on ExtensionConfig {0}")]
    NoCaBundle(
        /// The name of the ExtensionConfig.
        String,
    ),
    /// The server was not discovered yet.
    #[error("waiting for the Discovered condition of ExtensionConfig {0}")]
    NoCondition(
        /// The name of the ExtensionConfig.
        String,
    ),
    /// The discovery failed.
    #[error("ExtensionConfig {name} is not discovered: {message}")]
    Failed {
        /// The name of the ExtensionConfig.
        name: String,
        /// The message of the condition.
        message: String,
    },
    /// The condition is for another generation.
    #[error(
        "waiting for the Discovered condition of generation {generation} of ExtensionConfig {name}, observed generation is {observed}"
    )]
    Outdated {
        /// The name of the ExtensionConfig.
        name: String,
        /// The current generation.
        generation: i64,
        /// The generation of the condition.
        observed: i64,
    },
    /// A handler in the status is invalid.
    #[error("status.handlers[{index}].{field}: {problem}")]
    Handler {
        /// The index of the handler.
        index: usize,
        /// The field of the handler.
        field: &'static str,
        problem: String,
    },
}

/// Pauses reconciliation of an ExtensionConfig (`PausedAnnotation` of Cluster API).
const PAUSED: &str = "cluster.x-k8s.io/paused";

impl ExtensionConfig {
    /// Reads an ExtensionConfig of v1beta2 or v1alpha1.
    ///
    /// # Errors
    ///
    /// When its server cannot be called, or a field is invalid.
    pub fn read(config: &Value) -> Result<Self, ExtensionConfigError> {
        let error = |path, problem| ExtensionConfigError::Field { path, problem };
        let name = object::text(config, "/metadata/name").unwrap_or_default();
        if !is_label(name) {
            return Err(error("metadata.name", "must be a DNS label"));
        }
        let client_config = config.pointer("/spec/clientConfig").unwrap_or(&Value::Null);
        let bundle = object::text(client_config, "/caBundle").unwrap_or_default();
        let bundle = STANDARD
            .decode(bundle)
            .map_err(|_| error("spec.clientConfig.caBundle", "must be base64"))?;
        let url = object::text(client_config, "/url").filter(|url| !url.is_empty());
        let service = client_config.get("service").filter(|service| service.is_object());
        let server = match (service, url) {
            (Some(_), Some(_)) => {
                return Err(error("spec.clientConfig", "must not have both service and url"));
            }
            (None, None) => return Err(error("spec.clientConfig", "must have service or url")),
            (None, Some(url)) => ServerReference::url(url, bundle)?,
            (Some(service), None) => {
                let text = |field| object::text(service, field).unwrap_or_default();
                let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
                ServerReference::service(text("/namespace"), text("/name"), port, text("/path"), bundle)?
            }
        };
        let all = || Value::Object(serde_json::Map::new());
        let selector = config.pointer("/spec/namespaceSelector").cloned();
        // An absent selector selects all, like the default that Cluster API's webhook sets.
        let namespace_selector = selector
            .filter(|selector| !selector.is_null())
            .unwrap_or_else(all);
        label_selector::check(&namespace_selector)?;
        let settings = config.pointer("/spec/settings").and_then(Value::as_object);
        let settings = settings.into_iter().flatten();
        Ok(Self {
            name: name.to_owned(),
            resource_version: object::text(config, "/metadata/resourceVersion")
                .unwrap_or_default()
                .to_owned(),
            server,
            namespace_selector,
            settings: settings
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
        })
    }

    /// Reports whether a label selector selects all namespaces.
    pub fn is_for_all_namespaces(&self) -> bool {
        let is_nothing = |field: &str| match self.namespace_selector.get(field) {
            Some(Value::Object(labels)) => labels.is_empty(),
            Some(Value::Array(expressions)) => expressions.is_empty(),
            _ => true,
        };
        is_nothing("matchLabels") && is_nothing("matchExpressions")
    }

    /// Reports whether the handlers apply to objects of a namespace with these labels.
    pub fn is_for_namespace(&self, labels: &Value) -> bool {
        label_selector::matches(&self.namespace_selector, labels)
    }
}

/// Reports whether an ExtensionConfig is paused.
pub(super) fn is_paused(config: &Value) -> bool {
    object::annotation(config, PAUSED).is_some()
        || conditions(config).any(|condition| condition["type"] == "Paused" && condition["status"] == "True")
}

/// Returns the handlers in the status of an ExtensionConfig, if they may be called.
///
/// # Errors
///
/// When the current generation was not discovered, or a handler is invalid.
pub(super) fn discovered_handlers(
    config: &Value,
    needs_ca_bundle: bool,
) -> Result<Vec<Handler>, NotDiscoveredError> {
    let name = || {
        object::text(config, "/metadata/name")
            .unwrap_or_default()
            .to_owned()
    };
    let bundle = object::text(config, "/spec/clientConfig/caBundle").unwrap_or_default();
    if needs_ca_bundle && bundle.is_empty() {
        return Err(NotDiscoveredError::NoCaBundle(name()));
    }
    let condition = conditions(config).find(|condition| condition["type"] == "Discovered");
    let condition = condition.ok_or_else(|| NotDiscoveredError::NoCondition(name()))?;
    if condition["status"] != "True" {
        return Err(NotDiscoveredError::Failed {
            name: name(),
            message: object::text(condition, "/message").unwrap_or_default().to_owned(),
        });
    }
    let observed = condition["observedGeneration"].as_i64().unwrap_or_default();
    let generation = config
        .pointer("/metadata/generation")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    if observed != generation {
        return Err(NotDiscoveredError::Outdated {
            name: name(),
            generation,
            observed,
        });
    }
    let mut handlers: Vec<Handler> = Vec::new();
    for (index, item) in object::items(config, "/status/handlers").iter().enumerate() {
        let handler = handler(item, &name()).map_err(|(field, problem)| NotDiscoveredError::Handler {
            index,
            field,
            problem,
        })?;
        if handlers.iter().any(|known| known.name == handler.name) {
            let problem = format!("duplicate {:?}", handler.name);
            return Err(NotDiscoveredError::Handler {
                index,
                field: "name",
                problem,
            });
        }
        handlers.push(handler);
    }
    Ok(handlers)
}

fn handler(item: &Value, config: &str) -> Result<Handler, (&'static str, String)> {
    let name = object::text(item, "/name").unwrap_or_default();
    // A user who can edit the status of one ExtensionConfig must not register handlers of another.
    let own = name
        .split_once('.')
        .filter(|(handler, suffix)| is_label(handler) && *suffix == config);
    let (handler, _) = own.ok_or_else(|| {
        let problem = format!("{name:?} must have the form <handler>.{config}");
        ("name", problem)
    })?;
    let text = |pointer| object::text(item, pointer).unwrap_or_default().to_owned();
    let hook = HookReference {
        api_version: text("/requestHook/apiVersion"),
        hook: text("/requestHook/hook"),
    };
    if !hook.has_group_and_version() {
        let problem = format!("{:?} must have the form <group>/<version>", hook.api_version);
        return Err(("requestHook.apiVersion", problem));
    }
    if !hook.has_name() {
        let problem = format!("{:?} must be the name of a hook", hook.hook);
        return Err(("requestHook.hook", problem));
    }
    let seconds = item.get("timeoutSeconds").and_then(Value::as_i64);
    Ok(Handler {
        name: handler.to_owned(),
        hook,
        timeout_seconds: seconds
            .and_then(|seconds| i32::try_from(seconds.min(30)).ok())
            .filter(|seconds| *seconds > 0),
        failure_policy: match object::text(item, "/failurePolicy") {
            Some("Ignore") => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        },
    })
}

/// Returns the current conditions, whose path depends on the version.
fn conditions(config: &Value) -> impl Iterator<Item = &Value> {
    let place = match object::text(config, "/apiVersion") {
        Some("runtime.cluster.x-k8s.io/v1alpha1") => "/status/v1beta2/conditions",
        _ => "/status/conditions",
    };
    object::items(config, place).iter()
}
