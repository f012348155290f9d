//! The client side: calls handlers of hooks.
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
/// - No call takes longer than its handler's timeout, and all calls together no longer than their budget.
/// - The size of an answer is limited by the transport, and so is the memory of all answers together
///   ([`TransportOptions::answer_memory`](webhook_transport::client::TransportOptions::answer_memory)).
/// - `failurePolicy: Ignore` only ignores failures of the call itself, never a failure that the handler reports.
/// - A call is retried only if its hook is defined as idempotent.
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

/// How a hook is called: the time budget, the order of handlers, and the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// The budget of all calls together, in addition to each handler's timeout.
    pub budget: Option<Duration>,
    /// Whether handlers are called one at a time or concurrently.
    pub order: CallOrder,
    /// Whether a successful response to an identical request may be reused for up to 10 minutes. Only applies
    /// to calls of one handler.
    pub cached: bool,
}

/// The order in which several handlers are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// One after another by name, until one fails, so that at most one unresponsive handler delays the call.
    #[default]
    Sequential,
    /// Concurrently, until one fails.
    Concurrent(
        /// The maximum number of concurrent calls.
        usize,
    ),
}

/// How often a failed call of an idempotent hook is retried.
const RETRIES: u32 = 2;

impl CallOptions {
    /// When the budget ends; [`None`] without a budget.
    fn deadline(&self) -> Option<Instant> {
        self.budget.and_then(|budget| Instant::now().checked_add(budget))
    }
}

impl HookClient {
    /// Creates a client for the handlers of `registry` and the hooks of `catalog`.
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

    /// Sets the source of namespace labels, for handlers with a namespaceSelector.
    #[must_use]
    pub fn with_namespaces(mut self, namespaces: Arc<dyn NamespaceLabels>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Sets the circuit breaker; with [`None`], unresponsive servers are always called.
    #[must_use]
    pub fn with_circuit_breaker(mut self, breaker: Option<CircuitBreaker>) -> Self {
        self.circuits = Circuits::new(breaker);
        self
    }

    /// Sets the metrics.
    #[must_use]
    pub fn with_metrics(mut self, metrics: HookMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// The registry of handlers.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The catalog with the hooks that the client can call.
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
