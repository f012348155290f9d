//! Discovery of the handlers of a server.

use std::time::{Duration, Instant};

use thiserror::Error;
use webhook_transport::client::PostError;

use super::{
    HookClient,
    metrics::{self, CallOutcome},
};
use crate::{
    Hook,
    cluster_api::Discovery,
    discovery::{self, Discovered, DiscoveryError},
    hook::join,
    registry::ExtensionConfig,
};

/// Why the handlers of a server cannot be discovered.
#[derive(Debug, Error)]
pub enum DiscoverHandlersError {
    /// The server did not answer.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The answer is invalid.
    #[error(transparent)]
    Answer(#[from] DiscoveryError),
}

/// The timeout of a discovery (`defaultDiscoveryTimeout` of `internal/runtime/client/client.go`).
const TIMEOUT: Duration = Duration::from_secs(10);

impl HookClient {
    /// Calls the Discovery hook of an ExtensionConfig's server. This registers nothing.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or its answer is invalid.
    pub async fn discover(&self, config: &ExtensionConfig) -> Result<Discovered, DiscoverHandlersError> {
        let path = format!(
            "{}?timeout={}s",
            join(config.server.prefix(), &discovery::path()),
            TIMEOUT.as_secs()
        );
        let body = discovery::request().to_string().into();
        let started = Instant::now();
        let answered = self.transport.post(&config.server, &path, body, TIMEOUT).await;
        let (code, duration) = (metrics::code(&answered), started.elapsed());
        let discovered = answered
            .map_err(DiscoverHandlersError::from)
            .and_then(|answer| Ok(discovery::read_answer(&answer, &self.catalog)?));
        let outcome = CallOutcome {
            code,
            status: match &discovered {
                Ok(_) => "Success",
                Err(DiscoverHandlersError::Answer(DiscoveryError::Failure(_))) => "Failure",
                Err(_) => "Unknown",
            },
            duration,
        };
        self.metrics
            .count_request_of_server(&Discovery::reference(), &config.server, outcome);
        self.metrics.count_discovery(&config.name, discovered.is_ok());
        discovered
    }
}
