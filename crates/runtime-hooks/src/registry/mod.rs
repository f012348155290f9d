//! The registry of handlers, from ExtensionConfigs of a cluster or from code.

mod extension_config;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use serde_json::Value;
use thiserror::Error;
use windlass_object::{object, rfc1123::is_label};

pub use self::extension_config::{ExtensionConfig, ExtensionConfigError, NotDiscoveredError};
use crate::{
    HookReference,
    discovery::{FailurePolicy, Handler},
    hook::join,
};

/// Handlers by hook and by name.
///
/// # Guarantees
///
/// - The handlers of one ExtensionConfig change atomically.
/// - An invalid change keeps the previous registration; [`Self::states`] reports it.
/// - An invalid ExtensionConfig does not affect others.
/// - Handlers are always listed in the order of their names.
#[derive(Debug)]
pub struct Registry {
    needs_ca_bundle: bool,
    is_listed: AtomicBool,
    known: RwLock<Known>,
}

/// A handler that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredHandler {
    /// The unique name, `<handler>.<ExtensionConfig>`.
    pub name: String,
    /// The ExtensionConfig of its server.
    pub config: Arc<ExtensionConfig>,
    /// The hook that it answers, in the handler's version.
    pub hook: HookReference,
    /// The timeout of calls.
    pub timeout: Duration,
    /// How callers treat a failed call.
    pub failure_policy: FailurePolicy,
    path: String,
}

/// The state of an ExtensionConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationState {
    /// The current handlers are registered.
    Registered,
    /// The previous handlers are registered, because the current ones are invalid for this reason.
    Kept(String),
    /// No handler is registered, for this reason.
    Waiting(String),
}

/// Why handlers cannot be registered.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The ExtensionConfig is invalid.
    #[error(transparent)]
    ExtensionConfig(#[from] ExtensionConfigError),
    /// The handlers are not discovered.
    #[error("failed to validate ExtensionConfig: {0}")]
    NotDiscovered(#[from] NotDiscoveredError),
    /// The ExtensionConfig is paused.
    #[error("ExtensionConfig {0} is paused")]
    Paused(
        /// The name of the ExtensionConfig.
        String,
    ),
    /// A handler's name is not a DNS label, or not unique.
    #[error("{0:?} must be a DNS label and unique in its ExtensionConfig")]
    Name(
        /// The name of the handler.
        String,
    ),
}

/// The ExtensionConfigs of the cluster are not listed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("waiting for the first list of ExtensionConfigs")]
pub struct NotListedError;

#[derive(Debug, Default)]
struct Known {
    configs: BTreeMap<String, KnownConfig>,
    handlers: BTreeMap<String, Arc<RegisteredHandler>>,
    by_hook: BTreeMap<String, BTreeMap<String, Arc<RegisteredHandler>>>,
}

#[derive(Debug)]
struct KnownConfig {
    state: RegistrationState,
    handlers: Vec<Arc<RegisteredHandler>>,
}

/// The default timeout of a handler (`runtimehooksv1.DefaultHandlersTimeoutSeconds`).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl Registry {
    /// Creates a registry for the ExtensionConfigs of a cluster; lookups fail until [`Self::mark_listed`].
    /// ExtensionConfigs without a CA bundle are rejected, as in Cluster API.
    pub fn new() -> Self {
        Self {
            needs_ca_bundle: true,
            is_listed: AtomicBool::new(false),
            known: RwLock::default(),
        }
    }

    /// Creates a registry that counts as listed, to be filled by code.
    pub fn listed() -> Self {
        let registry = Self::new();
        registry.mark_listed();
        registry
    }

    /// Also accepts ExtensionConfigs without a CA bundle, whose servers are verified with the system's root
    /// certificates.
    #[must_use]
    pub fn with_system_roots(mut self) -> Self {
        self.needs_ca_bundle = false;
        self
    }

    /// Records that all ExtensionConfigs were listed.
    pub fn mark_listed(&self) {
        self.is_listed.store(true, Ordering::Release);
    }

    /// Reports whether all ExtensionConfigs were listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Acquire)
    }

    /// Registers the handlers in the status of an ExtensionConfig; removes an ExtensionConfig that is being
    /// deleted.
    ///
    /// # Errors
    ///
    /// When the ExtensionConfig is paused or invalid. Its previous registration is kept.
    pub fn apply(&self, config: &Value) -> Result<(), RegisterError> {
        let name = object::text(config, "/metadata/name")
            .unwrap_or_default()
            .to_owned();
        if object::is_terminating(config) {
            self.remove(&name);
            return Ok(());
        }
        let read = || {
            if extension_config::is_paused(config) {
                return Err(RegisterError::Paused(name.clone()));
            }
            let handlers = extension_config::discovered_handlers(config, self.needs_ca_bundle)?;
            registered_handlers(ExtensionConfig::read(config)?, handlers)
        };
        let read = read();
        let mut known = self.known.write();
        match read {
            Ok(handlers) => known.replace(name, handlers),
            Err(error) => {
                known.note(name, error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Registers a server and its handlers, replacing those of the same ExtensionConfig.
    ///
    /// # Errors
    ///
    /// When the name of a handler is invalid. The previous registration is kept.
    pub fn register(&self, config: ExtensionConfig, handlers: Vec<Handler>) -> Result<(), RegisterError> {
        let name = config.name.clone();
        let handlers = registered_handlers(config, handlers)?;
        self.known.write().replace(name, handlers);
        Ok(())
    }

    /// Removes an ExtensionConfig and its handlers.
    pub fn remove(&self, config: &str) {
        self.known.write().remove(config);
    }

    /// Removes the ExtensionConfigs for which `present` is false, after a new list.
    pub fn retain(&self, present: impl Fn(&str) -> bool) {
        let mut known = self.known.write();
        let gone: Vec<_> = known
            .configs
            .keys()
            .filter(|name| !present(name))
            .cloned()
            .collect();
        for name in gone {
            known.remove(&name);
        }
    }

    /// Returns the handlers of a hook in any version, sorted by name.
    ///
    /// # Errors
    ///
    /// When the ExtensionConfigs are not listed yet.
    pub fn list(&self, hook: &HookReference) -> Result<Vec<Arc<RegisteredHandler>>, NotListedError> {
        self.check_listed()?;
        let known = self.known.read();
        let handlers = known.by_hook.get(&hook.group_hook());
        Ok(handlers.into_iter().flat_map(BTreeMap::values).cloned().collect())
    }

    /// Returns all handlers, sorted by name.
    ///
    /// # Errors
    ///
    /// When the ExtensionConfigs are not listed yet.
    pub fn handlers(&self) -> Result<Vec<Arc<RegisteredHandler>>, NotListedError> {
        self.check_listed()?;
        Ok(self.known.read().handlers.values().cloned().collect())
    }

    /// Returns the handler `<handler>.<ExtensionConfig>`.
    ///
    /// # Errors
    ///
    /// When the ExtensionConfigs are not listed yet.
    pub fn get(&self, handler: &str) -> Result<Option<Arc<RegisteredHandler>>, NotListedError> {
        self.check_listed()?;
        Ok(self.known.read().handlers.get(handler).cloned())
    }

    /// Returns the state of each ExtensionConfig, by name.
    pub fn states(&self) -> BTreeMap<String, RegistrationState> {
        let known = self.known.read();
        let states = known.configs.iter();
        states
            .map(|(name, config)| (name.clone(), config.state.clone()))
            .collect()
    }

    fn check_listed(&self) -> Result<(), NotListedError> {
        self.is_listed().then_some(()).ok_or(NotListedError)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

fn registered_handlers(
    config: ExtensionConfig,
    handlers: Vec<Handler>,
) -> Result<Vec<RegisteredHandler>, RegisterError> {
    let config = Arc::new(config);
    let mut registered: Vec<RegisteredHandler> = Vec::with_capacity(handlers.len());
    for handler in handlers {
        let is_twice = || registered.iter().any(|known| known.short_name() == handler.name);
        if !is_label(&handler.name) || is_twice() {
            return Err(RegisterError::Name(handler.name));
        }
        registered.push(RegisteredHandler::new(config.clone(), handler));
    }
    Ok(registered)
}

impl RegisteredHandler {
    /// Creates a handler of the server of `config`.
    pub(crate) fn new(config: Arc<ExtensionConfig>, handler: Handler) -> Self {
        let seconds = handler
            .timeout_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            name: format!("{}.{}", handler.name, config.name),
            path: join(config.server.prefix(), &handler.hook.handler_path(&handler.name)),
            config,
            hook: handler.hook,
            timeout: seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            failure_policy: handler.failure_policy,
        }
    }

    /// The name of the handler in its server, without that of the ExtensionConfig.
    pub fn short_name(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// The path of the handler on its server.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Known {
    fn replace(&mut self, config: String, handlers: Vec<RegisteredHandler>) {
        self.remove(&config);
        let handlers: Vec<_> = handlers.into_iter().map(Arc::new).collect();
        for handler in &handlers {
            let of_hook = self.by_hook.entry(handler.hook.group_hook()).or_default();
            of_hook.insert(handler.name.clone(), handler.clone());
            self.handlers.insert(handler.name.clone(), handler.clone());
        }
        let state = RegistrationState::Registered;
        self.configs.insert(config, KnownConfig { state, handlers });
    }

    /// Records that an ExtensionConfig is invalid.
    fn note(&mut self, config: String, problem: String) {
        let known = self.configs.entry(config).or_insert_with(|| KnownConfig {
            state: RegistrationState::Waiting(String::new()),
            handlers: Vec::new(),
        });
        known.state = match known.state {
            RegistrationState::Waiting(_) => RegistrationState::Waiting(problem),
            _ => RegistrationState::Kept(problem),
        };
    }

    fn remove(&mut self, config: &str) {
        let known = self.configs.remove(config);
        for handler in known.into_iter().flat_map(|known| known.handlers) {
            self.handlers.remove(&handler.name);
            let hook = handler.hook.group_hook();
            if let Some(of_hook) = self.by_hook.get_mut(&hook) {
                of_hook.remove(&handler.name);
                if of_hook.is_empty() {
                    self.by_hook.remove(&hook);
                }
            }
        }
    }
}
