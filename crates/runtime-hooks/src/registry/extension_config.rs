//! ExtensionConfigs, as those read them who call their servers.

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

/// Where a server of handlers is, for whom they answer, and what they are to work with.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionConfig {
    /// A DNS label, one in the cluster.
    pub name: String,
    /// Changes with the object; empty for one that is in no cluster.
    pub resource_version: String,
    /// Who is called.
    pub server: ServerReference,
    /// For objects of which namespaces, a LabelSelector; `{}` for all.
    pub namespace_selector: Value,
    /// What every request gets, where whoever calls has not said otherwise.
    pub settings: HookSettings,
}

/// Why a server cannot be called by what its ExtensionConfig says.
#[derive(Debug, Error)]
pub enum ExtensionConfigError {
    /// A field is not as it must be.
    #[error("{path}: {problem}")]
    Field {
        /// The field.
        path: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Nobody can be called there.
    #[error("spec.clientConfig: {0}")]
    Server(#[from] ServerError),
    /// Nobody can select by it.
    #[error("spec.namespaceSelector{0}")]
    NamespaceSelector(#[from] LabelSelectorError),
}

/// Why the handlers that an ExtensionConfig's status names are not to be called (`validateExtensionConfig` of Cluster API's
/// `core/reconcilers/extensionconfig`).
#[derive(Debug, PartialEq, Eq, Error)]
pub enum NotDiscoveredError {
    /// Nobody has said whom to trust.
    #[error("caBundle is not set on ExtensionConfig {0}")]
    NoCaBundle(
        /// Its name.
        String,
    ),
    /// Nobody has asked the server yet.
    #[error("waiting for the Discovered condition of ExtensionConfig {0}")]
    NoCondition(
        /// Its name.
        String,
    ),
    /// The server was asked, and has not answered.
    #[error("ExtensionConfig {name} is not discovered: {message}")]
    Failed {
        /// Its name.
        name: String,
        /// What is said about it.
        message: String,
    },
    /// What is said is about another generation.
    #[error(
        "waiting for the Discovered condition of generation {generation} of ExtensionConfig {name}, it is of {observed}"
    )]
    Outdated {
        /// Its name.
        name: String,
        /// The generation that is there.
        generation: i64,
        /// The generation that the condition is about.
        observed: i64,
    },
    /// A handler is none that discovery can have written.
    #[error("status.handlers[{index}].{field}: {problem}")]
    Handler {
        /// Which.
        index: usize,
        /// Its field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// With it nothing becomes of an ExtensionConfig's changes (`PausedAnnotation` of Cluster API).
const PAUSED: &str = "cluster.x-k8s.io/paused";

// === impl ExtensionConfig ===

impl ExtensionConfig {
    /// Reads the object, of v1beta2 or v1alpha1.
    ///
    /// # Errors
    ///
    /// When its server cannot be called by what is said there.
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
                return Err(error("spec.clientConfig", "must have one of service and url"));
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
        // None at all is what the API server's default makes of it where Cluster API's webhook runs.
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

    /// Whether a label selector on namespaces leaves none out.
    pub fn is_for_all_namespaces(&self) -> bool {
        let is_nothing = |field: &str| match self.namespace_selector.get(field) {
            Some(Value::Object(labels)) => labels.is_empty(),
            Some(Value::Array(expressions)) => expressions.is_empty(),
            _ => true,
        };
        is_nothing("matchLabels") && is_nothing("matchExpressions")
    }

    /// Whether it is for the objects of a namespace with these labels.
    pub fn is_for_namespace(&self, labels: &Value) -> bool {
        label_selector::matches(&self.namespace_selector, labels)
    }
}

/// Whether nothing is to become of what changes.
pub(super) fn is_paused(config: &Value) -> bool {
    object::annotation(config, PAUSED).is_some()
        || conditions(config).any(|condition| condition["type"] == "Paused" && condition["status"] == "True")
}

/// The handlers that the status of an ExtensionConfig names, if they may be called.
///
/// # Errors
///
/// When nobody has discovered them for what the object says now, or one of them is not the server's own.
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
    // Whoever may edit the status of one ExtensionConfig is not to answer for another.
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

/// The conditions of today, in the place that the version has for them.
fn conditions(config: &Value) -> impl Iterator<Item = &Value> {
    let place = match object::text(config, "/apiVersion") {
        Some("runtime.cluster.x-k8s.io/v1alpha1") => "/status/v1beta2/conditions",
        _ => "/status/conditions",
    };
    object::items(config, place).iter()
}
