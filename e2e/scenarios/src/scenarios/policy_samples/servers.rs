//! The servers that samples ask, all at one address: they answer what the case says that is played.

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
    /// What they are trusted by, in PEM.
    pub(super) ca: String,
    responses: Arc<Mutex<Vec<KnownResponse>>>,
    _stop: DropGuard,
}

/// For longer than anybody waits.
const SILENCE: Duration = Duration::from_secs(60);

// === impl SampleServers ===

impl SampleServers {
    /// Begins to listen where replicas of the operator can reach it.
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

    /// Has them answer this from now on, and what comes first before the same in what follows.
    pub(super) fn answer(&self, known: [&KnownData; 2]) {
        let responses = known.into_iter().flat_map(|known| known.responses.clone());
        *self.responses.lock() = responses.collect();
    }

    /// A policy that asks these, wherever it asks servers.
    pub(super) fn asked_by(&self, policy: &Value) -> Value {
        let mut policy = policy.clone();
        self.lead_here(&mut policy);
        policy
    }

    fn lead_here(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(url)) = fields.get_mut("http").and_then(|http| http.get_mut("url"))
                {
                    *url = url.replacen("https://", &format!("https://{}/", self.address), 1);
                }
                fields.values_mut().for_each(|value| self.lead_here(value));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.lead_here(item)),
            _ => {}
        }
    }
}

/// The path begins with the name of the server that is meant.
async fn answer(State(responses): State<Arc<Mutex<Vec<KnownResponse>>>>, request: Request) -> Response {
    let known = KnownData {
        objects: Vec::new(),
        responses: responses.lock().clone(),
    };
    let path = request.uri().path_and_query().map_or("", |path| path.as_str());
    let asked = HttpRequest {
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
        .any(|response| response.method == asked.method && response.url == asked.url);
    match KnownData::answer(&[&known], &DataReference::Http(asked)) {
        FetchedAnswer::Found(body) => Json(body).into_response(),
        // Of one that the case knows it says that nothing comes.
        FetchedAnswer::Failed(_) if is_known => {
            tokio::time::sleep(SILENCE).await;
            StatusCode::GATEWAY_TIMEOUT.into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
