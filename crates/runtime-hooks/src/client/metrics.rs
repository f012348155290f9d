//! What calls are counted by: Cluster API's metrics by their names (`internal/runtime/metrics/metrics.go`), and what they lack.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use crate::{HookReference, registry::RegisteredHandler};

/// Counters of calls and discoveries. A clone counts to the same.
#[derive(Clone, Debug)]
pub struct HookMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
    handler_requests: Family<HandlerLabels, Counter>,
    ignored_failures: Family<NamedHandlerLabels, Counter>,
    deprecated_requests: Family<NamedHandlerLabels, Counter>,
    discoveries: Family<DiscoveryLabels, Counter>,
}

/// How a call ended.
pub(super) struct CallOutcome<'a> {
    /// The HTTP status; [`None`] where there was no answer.
    pub(super) code: Option<u16>,
    /// `Success`, `Failure` or `Unknown`.
    pub(super) status: &'a str,
    pub(super) duration: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    host: String,
    group: String,
    version: String,
    hook: String,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    host: String,
    group: String,
    version: String,
    hook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandlerLabels {
    handler: String,
    extension_config: String,
    group: String,
    version: String,
    hook: String,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NamedHandlerLabels {
    handler: String,
    extension_config: String,
    group: String,
    version: String,
    hook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DiscoveryLabels {
    extension_config: String,
    result: &'static str,
}

/// From 5 ms to a minute, as Cluster API has them.
const BUCKETS: [f64; 23] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0,
    15.0, 20.0, 30.0, 60.0,
];

// === impl HookMetrics ===

impl HookMetrics {
    /// Registers all of them, at 0. The registry is to have no prefix: others look for them by these names.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::new();
        registry.register(
            "capi_runtime_sdk_requests",
            "Requests to extensions by HTTP code, host, hook as it was asked, and status of the response",
            metrics.requests.clone(),
        );
        registry.register(
            "capi_runtime_sdk_request_duration_seconds",
            "Duration of requests to extensions by host and hook as it was asked",
            metrics.durations.clone(),
        );
        registry.register(
            "capi_runtime_sdk_handler_requests",
            "Requests to each handler, in the version that it answers",
            metrics.handler_requests.clone(),
        );
        registry.register(
            "capi_runtime_sdk_ignored_failures",
            "Calls that failed and were ignored, by failurePolicy Ignore",
            metrics.ignored_failures.clone(),
        );
        registry.register(
            "capi_runtime_sdk_deprecated_requests",
            "Requests to handlers that answer a deprecated version of their hook",
            metrics.deprecated_requests.clone(),
        );
        registry.register(
            "capi_runtime_sdk_discoveries",
            "Discoveries of each ExtensionConfig by result",
            metrics.discoveries.clone(),
        );
        metrics
    }

    /// Counts to nowhere.
    pub(super) fn new() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            handler_requests: Family::default(),
            ignored_failures: Family::default(),
            deprecated_requests: Family::default(),
            discoveries: Family::default(),
        }
    }

    /// Counts one request over the network.
    pub(super) fn request(&self, asked: &HookReference, handler: &RegisteredHandler, outcome: &CallOutcome) {
        let host = || handler.config.server.authority().to_owned();
        let (group, version, hook) = names(asked);
        self.requests
            .get_or_create(&RequestLabels {
                code: outcome
                    .code
                    .map_or_else(|| "<error>".to_owned(), |code| code.to_string()),
                host: host(),
                group: group.clone(),
                version: version.clone(),
                hook: hook.clone(),
                status: outcome.status.to_owned(),
            })
            .inc();
        let duration = DurationLabels {
            host: host(),
            group,
            version,
            hook,
        };
        self.durations
            .get_or_create(&duration)
            .observe(outcome.duration.as_secs_f64());
        let (group, version, hook) = names(&handler.hook);
        self.handler_requests
            .get_or_create(&HandlerLabels {
                handler: handler.name.clone(),
                extension_config: handler.config.name.clone(),
                group,
                version,
                hook,
                status: outcome.status.to_owned(),
            })
            .inc();
    }

    pub(super) fn ignored_failure(&self, handler: &RegisteredHandler) {
        self.ignored_failures
            .get_or_create(&NamedHandlerLabels::of(handler))
            .inc();
    }

    pub(super) fn deprecated_request(&self, handler: &RegisteredHandler) {
        self.deprecated_requests
            .get_or_create(&NamedHandlerLabels::of(handler))
            .inc();
    }

    pub(super) fn discovery(&self, extension_config: &str, is_success: bool) {
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

// === impl NamedHandlerLabels ===

impl NamedHandlerLabels {
    fn of(handler: &RegisteredHandler) -> Self {
        let (group, version, hook) = names(&handler.hook);
        Self {
            handler: handler.name.clone(),
            extension_config: handler.config.name.clone(),
            group,
            version,
            hook,
        }
    }
}

fn names(hook: &HookReference) -> (String, String, String) {
    (
        hook.group().to_owned(),
        hook.version().to_owned(),
        hook.hook.clone(),
    )
}
