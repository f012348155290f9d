//! Calling hooks.
//!
//! ```text
//! hook, namespace -> registry -> handlers -> request of their version, with their settings -> POST -> one response
//! ```

mod call;
mod circuit_breaker;
mod discover;
mod error;
mod metrics;
mod namespaces;
mod request;
mod request_fields;
mod response_cache;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use webhook_transport::client::Transport;

pub use self::{
    circuit_breaker::CircuitBreaker,
    discover::DiscoverHandlersError,
    error::{HandlerError, HookCallError},
    metrics::HookMetrics,
    namespaces::{NamespaceError, NamespaceLabels, NoNamespaces},
};
use self::{circuit_breaker::Circuits, response_cache::ResponseCache};
use crate::{Catalog, Registry};

/// Calls the handlers of a registry.
///
/// # Guarantees
///
/// - No call takes longer than its handler's timeout, nor all of them longer than the budget that they are given.
/// - No more of an answer is read than the transport has as its limit, and of all answers together no more than there is memory for
///   ([`TransportOptions::answer_memory`](webhook_transport::client::TransportOptions::answer_memory)).
/// - `failurePolicy: Ignore` makes good what a call misses on its way, and nothing else: a handler that says it failed has failed.
/// - A call is tried again only where its hook is idempotent, by its definition.
#[derive(Clone)]
pub struct HookClient {
    catalog: Arc<Catalog>,
    registry: Arc<Registry>,
    transport: Transport,
    namespaces: Arc<dyn NamespaceLabels>,
    circuits: Circuits,
    cache: ResponseCache,
    metrics: HookMetrics,
    retries: u32,
}

/// How handlers are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// How long all of them together may take. Each has its own timeout beside that.
    pub budget: Option<Duration>,
    /// One after another, or beside each other.
    pub order: CallOrder,
    /// Whether a successful response to the same request may be one of up to 10 minutes ago. Only where one handler is called.
    pub cached: bool,
}

/// In which order several handlers are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// By name, one after another, until one fails: so that several that do not answer are not all waited for.
    #[default]
    Sequential,
    /// So many beside each other, until one fails.
    Concurrent(
        /// At most.
        usize,
    ),
}

/// How often a call of an idempotent hook is tried again that failed on its way.
const RETRIES: u32 = 2;

// === impl CallOptions ===

impl CallOptions {
    /// When the budget ends; [`None`] where that is never.
    fn deadline(&self) -> Option<Instant> {
        self.budget.and_then(|budget| Instant::now().checked_add(budget))
    }
}

// === impl HookClient ===

impl HookClient {
    /// A client of the handlers of `registry`, which knows the hooks of `catalog`.
    pub fn new(catalog: Arc<Catalog>, registry: Arc<Registry>, transport: Transport) -> Self {
        Self {
            catalog,
            registry,
            transport,
            namespaces: Arc::new(NoNamespaces),
            circuits: Circuits::new(Some(CircuitBreaker::default())),
            cache: ResponseCache::new(),
            metrics: HookMetrics::default(),
            retries: RETRIES,
        }
    }

    /// Knows namespaces, for handlers that are for the objects of some only.
    #[must_use]
    pub fn with_namespaces(mut self, namespaces: Arc<dyn NamespaceLabels>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Leaves servers alone that do not answer, or with [`None`] calls them however often.
    #[must_use]
    pub fn with_circuit_breaker(mut self, breaker: Option<CircuitBreaker>) -> Self {
        self.circuits = Circuits::new(breaker);
        self
    }

    /// Counts to `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: HookMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Whose handlers are called.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Which hooks it knows.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
}

impl fmt::Debug for HookClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HookClient")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}
