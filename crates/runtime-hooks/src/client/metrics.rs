//! Metrics of calls: those of Cluster API by the same names (`internal/runtime/metrics/metrics.go`), and
//! additional ones.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::RwLock;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelSetEncoder, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use webhook_transport::{ServerReference, client::PostError};

use crate::{HookReference, registry::RegisteredHandler};

/// Metrics of calls and discoveries. Clones share their values.
#[derive(Clone, Debug)]
pub struct HookMetrics {
    requests: Family<(Shared<RequestLabels>, OutcomeLabels), Counter>,
    durations: Family<Shared<RequestLabels>, Histogram, fn() -> Histogram>,
    handler_requests: Family<(Shared<HandlerLabels>, StatusLabels), Counter>,
    ignored_failures: Family<Shared<HandlerLabels>, Counter>,
    deprecated_requests: Family<Shared<HandlerLabels>, Counter>,
    discoveries: Family<DiscoveryLabels, Counter>,
    /// The labels of each called handler, so that a call does not format them.
    labels: Arc<RwLock<HashMap<String, Arc<CallLabels>>>>,
}

/// How a call ended.
#[derive(Clone, Copy)]
pub(super) struct CallOutcome {
    /// The HTTP status; [`None`] without an answer.
    pub(super) code: Option<u16>,
    /// `Success`, `Failure` or `Unknown`.
    pub(super) status: &'static str,
    pub(super) duration: Duration,
}

/// The labels of a handler's calls, with the series that most calls use. Caching them makes calls cheap.
#[derive(Debug)]
struct CallLabels {
    asked: Shared<RequestLabels>,
    handler: Shared<HandlerLabels>,
    durations: Histogram,
    /// Series of successful responses, created with the first.
    successes: OnceLock<(Counter, Counter)>,
}

/// Labels that several series share.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shared<L>(Arc<L>);

#[derive(Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    host: String,
    group: String,
    version: String,
    hook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    code: Code,
    status: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Code(Option<u16>);

#[derive(Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandlerLabels {
    handler: String,
    extension_config: String,
    group: String,
    version: String,
    hook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DiscoveryLabels {
    extension_config: String,
    result: &'static str,
}

/// The status label of successful calls, which have code 200.
pub(super) const SUCCESS: &str = "Success";

/// From 5 ms to a minute, as in Cluster API.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

impl HookMetrics {
    /// Registers all metrics. `registry` must have no prefix, because dashboards for Cluster API use these
    /// names.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::new();
        registry.register(
            "capi_runtime_sdk_requests",
            "Requests to extensions, by HTTP code, host, requested hook and status of the response",
            metrics.requests.clone(),
        );
        registry.register(
            "capi_runtime_sdk_request_duration_seconds",
            "Duration of requests to extensions, by host and requested hook",
            metrics.durations.clone(),
        );
        registry.register(
            "capi_runtime_sdk_handler_requests",
            "Requests to each handler, in the version that it answers",
            metrics.handler_requests.clone(),
        );
        registry.register(
            "capi_runtime_sdk_ignored_failures",
            "Calls that failed and were ignored because of failurePolicy Ignore",
            metrics.ignored_failures.clone(),
        );
        registry.register(
            "capi_runtime_sdk_deprecated_requests",
            "Requests to handlers that answer a deprecated version of their hook",
            metrics.deprecated_requests.clone(),
        );
        registry.register(
            "capi_runtime_sdk_discoveries",
            "Discoveries of each ExtensionConfig, by result",
            metrics.discoveries.clone(),
        );
        metrics
    }

    /// Creates metrics that are not registered.
    pub(super) fn new() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            handler_requests: Family::default(),
            ignored_failures: Family::default(),
            deprecated_requests: Family::default(),
            discoveries: Family::default(),
            labels: Arc::default(),
        }
    }

    /// Counts one request to a handler.
    pub(super) fn count_request(
        &self,
        asked: &HookReference,
        handler: &RegisteredHandler,
        outcome: CallOutcome,
    ) {
        let labels = self.call_labels(asked, handler);
        labels.durations.observe(outcome.duration.as_secs_f64());
        let counters = || {
            let status = StatusLabels {
                status: outcome.status,
            };
            let handler_labels = (labels.handler.clone(), status);
            (
                self.counter(&labels.asked, outcome),
                self.handler_requests.get_or_create_owned(&handler_labels),
            )
        };
        let (requests, handler_requests) = match outcome.status {
            SUCCESS => labels.successes.get_or_init(counters),
            _ => &counters(),
        };
        requests.inc();
        handler_requests.inc();
    }

    /// Counts one request to a server that is for no handler.
    pub(super) fn count_request_of_server(
        &self,
        asked: &HookReference,
        server: &ServerReference,
        outcome: CallOutcome,
    ) {
        let asked = Shared(Arc::new(RequestLabels::new(asked, server)));
        self.counter(&asked, outcome).inc();
        let durations = self.durations.get_or_create(&asked);
        durations.observe(outcome.duration.as_secs_f64());
    }

    pub(super) fn count_ignored_failure(&self, asked: &HookReference, handler: &RegisteredHandler) {
        let labels = self.call_labels(asked, handler);
        self.ignored_failures.get_or_create(&labels.handler).inc();
    }

    pub(super) fn count_deprecated_request(&self, asked: &HookReference, handler: &RegisteredHandler) {
        let labels = self.call_labels(asked, handler);
        self.deprecated_requests.get_or_create(&labels.handler).inc();
    }

    fn counter(&self, asked: &Shared<RequestLabels>, outcome: CallOutcome) -> Counter {
        let labels = OutcomeLabels {
            code: Code(outcome.code),
            status: outcome.status,
        };
        self.requests.get_or_create_owned(&(asked.clone(), labels))
    }

    /// Returns the labels for a handler; they are created if the handler with this name has changed.
    fn call_labels(&self, asked: &HookReference, handler: &RegisteredHandler) -> Arc<CallLabels> {
        let known = self.labels.read().get(&handler.name).cloned();
        if let Some(known) = known.filter(|known| known.matches(asked, handler)) {
            return known;
        }
        let asked = Shared(Arc::new(RequestLabels::new(asked, &handler.config.server)));
        let written = Arc::new(CallLabels {
            durations: self.durations.get_or_create_owned(&asked),
            successes: OnceLock::new(),
            asked,
            handler: Shared(Arc::new(HandlerLabels::new(handler))),
        });
        self.labels.write().insert(handler.name.clone(), written.clone());
        written
    }

    pub(super) fn count_discovery(&self, extension_config: &str, is_success: bool) {
        let labels = DiscoveryLabels {
            extension_config: extension_config.to_owned(),
            result: if is_success { "Success" } else { "Failure" },
        };
        self.discoveries.get_or_create(&labels).inc();
    }
}

impl Default for HookMetrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the HTTP status of an answer; [`None`] without an answer.
pub(super) fn code<T>(answered: &Result<T, PostError>) -> Option<u16> {
    match answered {
        Ok(_) => Some(200),
        Err(PostError::Status { status, .. }) => Some(status.as_u16()),
        Err(_) => None,
    }
}

impl CallLabels {
    fn matches(&self, asked: &HookReference, handler: &RegisteredHandler) -> bool {
        let (request_labels, handler_labels) = (&*self.asked.0, &*self.handler.0);
        request_labels.host == handler.config.server.authority()
            && request_labels.version == asked.version()
            && request_labels.hook == asked.hook
            && request_labels.group == asked.group()
            && handler_labels.version == handler.hook.version()
            && handler_labels.hook == handler.hook.hook
            && handler_labels.group == handler.hook.group()
    }
}

impl RequestLabels {
    fn new(asked: &HookReference, server: &ServerReference) -> Self {
        Self {
            host: server.authority().to_owned(),
            group: asked.group().to_owned(),
            version: asked.version().to_owned(),
            hook: asked.hook.clone(),
        }
    }
}

impl HandlerLabels {
    fn new(handler: &RegisteredHandler) -> Self {
        Self {
            handler: handler.name.clone(),
            extension_config: handler.config.name.clone(),
            group: handler.hook.group().to_owned(),
            version: handler.hook.version().to_owned(),
            hook: handler.hook.hook.clone(),
        }
    }
}

impl<L> Clone for Shared<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: EncodeLabelSet> EncodeLabelSet for Shared<L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self.0 {
            Some(code) => EncodeLabelValue::encode(&code, encoder),
            None => EncodeLabelValue::encode(&"<error>", encoder),
        }
    }
}
