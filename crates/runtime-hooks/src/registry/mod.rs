//! Who answers which hook: handlers by name, from ExtensionConfigs in a cluster or from code.

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

/// Handlers, by hook and by name.
///
/// # Guarantees
///
/// - The handlers of one ExtensionConfig change at once: nobody sees some of the old ones and some of the new.
/// - A change that cannot be used leaves what was registered before, and is told by [`Self::states`].
/// - What is wrong with one ExtensionConfig is in nobody else's way.
/// - Handlers are listed by name, always in the same order.
#[derive(Debug)]
pub struct Registry {
    needs_ca_bundle: bool,
    is_listed: AtomicBool,
    known: RwLock<Known>,
}

/// A handler that may be called.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredHandler {
    /// `<handler>.<ExtensionConfig>`: one among all.
    pub name: String,
    /// Where it is, and for whom.
    pub config: Arc<ExtensionConfig>,
    /// What it answers, in the version that it answers.
    pub hook: HookReference,
    /// How long it may take.
    pub timeout: Duration,
    /// What a call that fails means.
    pub failure_policy: FailurePolicy,
    path: String,
}

/// What has become of an ExtensionConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationState {
    /// Its handlers are called as it says.
    Registered,
    /// Its handlers are called as it said before, for this reason.
    Kept(String),
    /// None of its handlers is called, for this reason.
    Waiting(String),
}

/// Why handlers are not registered.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The server cannot be called.
    #[error(transparent)]
    ExtensionConfig(#[from] ExtensionConfigError),
    /// The handlers are not known.
    #[error("failed to validate ExtensionConfig: {0}")]
    NotDiscovered(#[from] NotDiscoveredError),
    /// Nothing is to become of what has changed.
    #[error("ExtensionConfig {0} is paused")]
    Paused(
        /// Its name.
        String,
    ),
    /// A name is none of a handler, or that of two.
    #[error("{0:?} must be a DNS label, once in an ExtensionConfig")]
    Name(
        /// The name.
        String,
    ),
}

/// Nobody knows yet who answers.
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

/// How long a handler may take that does not say (`runtimehooksv1.DefaultHandlersTimeoutSeconds`).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

// === impl Registry ===

impl Registry {
    /// A registry that is filled from a cluster: until [`Self::mark_listed`] nobody knows who answers. ExtensionConfigs without a
    /// CA bundle are refused, as by all who read them.
    pub fn new() -> Self {
        Self {
            needs_ca_bundle: true,
            is_listed: AtomicBool::new(false),
            known: RwLock::default(),
        }
    }

    /// A registry that code fills: what is not in it is not there.
    pub fn in_code() -> Self {
        let registry = Self::new();
        registry.mark_listed();
        registry
    }

    /// Takes ExtensionConfigs without a CA bundle, too: whom the system trusts may answer.
    #[must_use]
    pub fn with_system_roots(mut self) -> Self {
        self.needs_ca_bundle = false;
        self
    }

    /// All ExtensionConfigs have been seen once.
    pub fn mark_listed(&self) {
        self.is_listed.store(true, Ordering::Release);
    }

    /// Whether all ExtensionConfigs have been seen once, whatever became of them.
    pub fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Acquire)
    }

    /// Takes in an ExtensionConfig as it is in the cluster now, with the handlers that its status names; forgets one that is being
    /// deleted.
    ///
    /// # Errors
    ///
    /// When it is paused or cannot be used. What was registered of it before stays.
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
            registered(ExtensionConfig::read(config)?, handlers)
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

    /// Takes in a server and its handlers, in place of what was known by that name.
    ///
    /// # Errors
    ///
    /// When a name cannot be that of a handler. What was registered before stays.
    pub fn register(&self, config: ExtensionConfig, handlers: Vec<Handler>) -> Result<(), RegisterError> {
        let name = config.name.clone();
        let handlers = registered(config, handlers)?;
        self.known.write().replace(name, handlers);
        Ok(())
    }

    /// Forgets an ExtensionConfig and its handlers.
    pub fn remove(&self, config: &str) {
        self.known.write().remove(config);
    }

    /// Forgets every ExtensionConfig that is not in `present`: what a new list does not have is gone.
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

    /// Who answers a hook, in whatever version, by name.
    ///
    /// # Errors
    ///
    /// When nobody knows yet.
    pub fn list(&self, hook: &HookReference) -> Result<Vec<Arc<RegisteredHandler>>, NotListedError> {
        self.check_listed()?;
        let known = self.known.read();
        let handlers = known.by_hook.get(&hook.group_hook());
        Ok(handlers.into_iter().flat_map(BTreeMap::values).cloned().collect())
    }

    /// All handlers, by name.
    ///
    /// # Errors
    ///
    /// When nobody knows yet.
    pub fn handlers(&self) -> Result<Vec<Arc<RegisteredHandler>>, NotListedError> {
        self.check_listed()?;
        Ok(self.known.read().handlers.values().cloned().collect())
    }

    /// The handler `<handler>.<ExtensionConfig>`.
    ///
    /// # Errors
    ///
    /// When nobody knows yet.
    pub fn get(&self, handler: &str) -> Result<Option<Arc<RegisteredHandler>>, NotListedError> {
        self.check_listed()?;
        Ok(self.known.read().handlers.get(handler).cloned())
    }

    /// What has become of each ExtensionConfig, by name.
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

fn registered(
    config: ExtensionConfig,
    handlers: Vec<Handler>,
) -> Result<Vec<RegisteredHandler>, RegisterError> {
    let config = Arc::new(config);
    let mut registered: Vec<RegisteredHandler> = Vec::with_capacity(handlers.len());
    for handler in handlers {
        let is_twice = || registered.iter().any(|known| known.own_name() == handler.name);
        if !is_label(&handler.name) || is_twice() {
            return Err(RegisterError::Name(handler.name));
        }
        registered.push(RegisteredHandler::new(config.clone(), handler));
    }
    Ok(registered)
}

// === impl RegisteredHandler ===

impl RegisteredHandler {
    /// A handler of the server of `config`.
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

    /// Its name without that of its ExtensionConfig: what its server knows it by.
    pub fn own_name(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// Where its server answers.
    pub fn path(&self) -> &str {
        &self.path
    }
}

// === impl Known ===

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

    /// Notes that an ExtensionConfig could not be used as it is.
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
