//! The webhook client. It keeps idle connections per target and exact bundle bytes for 90 s.
//!
//! So a new bundle always causes a new handshake, and an unchanged one does not, as on the real server.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    connection::{Connection, ExchangeError},
    endpoints::Endpoints,
    error::{self, CallError},
    target::WebhookClientConfig,
};

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(90);

/// How many idle connections are kept per target: `idleConnsPerHost` of client-go's `transport/cache.go`.
const IDLE_CONNECTIONS: usize = 25;

/// The largest response in bytes.
const MAXIMUM_ANSWER: usize = 32 << 20;

/// Calls webhooks.
#[derive(Clone)]
pub struct WebhookClient {
    endpoints: Arc<dyn Endpoints>,
    idle: Arc<Mutex<Vec<Idle>>>,
}

struct Idle {
    target: WebhookClientConfig,
    since: Instant,
    connection: Connection,
}

impl WebhookClient {
    /// Creates a client that resolves Services with `endpoints`.
    pub fn new(endpoints: Arc<dyn Endpoints>) -> Self {
        Self {
            endpoints,
            idle: Arc::default(),
        }
    }

    /// POSTs `body` to a `clientConfig` (`service` or `url`, `caBundle`) and returns the JSON of its
    /// response.
    ///
    /// # Errors
    ///
    /// With the message of the real server, when no JSON response arrives within `timeout`.
    pub async fn post(&self, config: &Value, body: &Value, timeout: Duration) -> Result<Value, CallError> {
        let target = WebhookClientConfig::parse(config)?;
        let url = target.url(timeout);
        let exchange = self.exchange(&target, &url, body);
        let (status, bytes) = tokio::time::timeout(timeout, exchange)
            .await
            .unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
            .map_err(|detail| CallError::Post { url, detail })?;
        error::check(status, &bytes)?;
        error::decode(&bytes)
    }

    /// Sends one request, on an idle connection if one still works, and returns the response.
    async fn exchange(
        &self,
        target: &WebhookClientConfig,
        url: &str,
        body: &Value,
    ) -> Result<(u16, Bytes), String> {
        let body = Bytes::from(body.to_string());
        while let Some(mut connection) = self.take_idle(target) {
            match send(&mut connection, target, url, body.clone()).await {
                Ok(answer) => {
                    self.put_idle(target, connection);
                    return Ok(answer);
                }
                Err(ExchangeError::BeforeAnswer) => {} // the server closed the idle connection
                Err(ExchangeError::Failed(detail)) => return Err(detail),
            }
        }
        let address = target.address(self.endpoints.as_ref()).await?;
        let mut connection = Connection::open(address, target).await?;
        match send(&mut connection, target, url, body).await {
            Ok(answer) => {
                self.put_idle(target, connection);
                Ok(answer)
            }
            Err(ExchangeError::BeforeAnswer) => Err("EOF".to_owned()),
            Err(ExchangeError::Failed(detail)) => Err(detail),
        }
    }

    fn take_idle(&self, target: &WebhookClientConfig) -> Option<Connection> {
        let mut idle = self.idle.lock();
        idle.retain(|entry| entry.since.elapsed() < IDLE && entry.connection.is_open());
        let found = idle
            .iter()
            .rposition(|entry| entry.target.shares_connections_with(target))?;
        Some(idle.remove(found).connection)
    }

    fn put_idle(&self, target: &WebhookClientConfig, connection: Connection) {
        let mut idle = self.idle.lock();
        let kept = idle
            .iter()
            .filter(|entry| entry.target.shares_connections_with(target));
        if connection.is_open() && kept.count() < IDLE_CONNECTIONS {
            idle.push(Idle {
                target: target.clone(),
                since: Instant::now(),
                connection,
            });
        }
    }
}

async fn send(
    connection: &mut Connection,
    target: &WebhookClientConfig,
    url: &str,
    body: Bytes,
) -> Result<(u16, Bytes), ExchangeError> {
    let path = url
        .find("://")
        .and_then(|scheme| url[scheme + 3..].find('/').map(|slash| scheme + 3 + slash));
    let request = Request::post(path.map_or("/", |path| &url[path..]))
        .header(header::HOST, target.host())
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| ExchangeError::Failed(error.to_string()))?;
    let response = connection.send(request).await?;
    let status = response.status().as_u16();
    let answer = http_body_util::Limited::new(response.into_body(), MAXIMUM_ANSWER)
        .collect()
        .await
        .map_err(|_| ExchangeError::Failed("unexpected EOF".to_owned()))?;
    Ok((status, answer.to_bytes()))
}
