//! The HTTP servers of samples, all at one address, with the responses of the current case.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use policy::{DataReference, FetchedAnswer, HttpRequest, KnownData, KnownResponse, api::HttpMethod};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{hook_server, test_cluster::TestCluster};

/// Servers that listen until they are dropped.
pub(super) struct SampleServers {
    pub(super) address: SocketAddr,
    /// The CA certificate of the servers in PEM.
    pub(super) ca: String,
    responses: Arc<Mutex<Vec<KnownResponse>>>,
    _stop: DropGuard,
}

/// Longer than any timeout.
const SILENCE: Duration = Duration::from_secs(60);

impl SampleServers {
    /// Starts the servers at an address that replicas of the operator can reach.
    ///
    /// # Errors
    ///
    /// When there is no port or no certificate.
    pub(super) async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((cluster.backing.address(), 0)).await?;
        let address = listener.local_addr()?;
        let (acceptor, ca) = hook_server::certified(&address.ip().to_string())?;
        let responses: Arc<Mutex<Vec<KnownResponse>>> = Arc::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&responses));
        let stop = CancellationToken::new();
        let served = hook_server::serve(listener, acceptor, router);
        tokio::spawn(stop.clone().run_until_cancelled_owned(served));
        Ok(Self {
            address,
            ca,
            responses,
            _stop: stop.drop_guard(),
        })
    }

    /// Sets the responses. The first response for a request has precedence.
    pub(super) fn set_responses(&self, known: [&KnownData; 2]) {
        let responses = known.into_iter().flat_map(|known| known.responses.clone());
        *self.responses.lock() = responses.collect();
    }

    /// Returns a policy with the URLs of these servers.
    pub(super) fn redirect(&self, policy: &Value) -> Value {
        let mut policy = policy.clone();
        self.redirect_urls(&mut policy);
        policy
    }

    fn redirect_urls(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(url)) = fields.get_mut("http").and_then(|http| http.get_mut("url"))
                {
                    *url = url.replacen("https://", &format!("https://{}/", self.address), 1);
                }
                fields.values_mut().for_each(|value| self.redirect_urls(value));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redirect_urls(item)),
            _ => {}
        }
    }
}

/// The path starts with the name of the intended server.
async fn answer(State(responses): State<Arc<Mutex<Vec<KnownResponse>>>>, request: Request) -> Response {
    let known = KnownData {
        objects: Vec::new(),
        responses: responses.lock().clone(),
    };
    let path = request.uri().path_and_query().map_or("", |path| path.as_str());
    let call = HttpRequest {
        method: match *request.method() {
            Method::POST => HttpMethod::Post,
            _ => HttpMethod::Get,
        },
        url: format!("https:/{path}"),
        headers: [].into(),
        body: None,
        auth: None,
    };
    let is_known = known
        .responses
        .iter()
        .any(|response| response.method == call.method && response.url == call.url);
    match KnownData::answer(&[&known], &DataReference::Http(call)) {
        FetchedAnswer::Found(body) => Json(body).into_response(),
        // A response that is known to fail never arrives.
        FetchedAnswer::Failed(_) if is_known => {
            tokio::time::sleep(SILENCE).await;
            StatusCode::GATEWAY_TIMEOUT.into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
