//! Spans for requests to API servers, in OpenTelemetry's conventions for HTTP clients, with propagation of
//! the trace.

use http::{HeaderValue, Method, Request, StatusCode};
use kube::{Client, client::Body};
use opentelemetry::KeyValue;
use tower::{BoxError, service_fn};

use super::{scope::OpenSpan, traced_resource::TracedResource};

/// Header that propagates the trace.
const TRACEPARENT: &str = "traceparent";

/// Returns a client that sends through `client`. Requests outside a trace are unchanged.
pub(super) fn traced_client(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let telling = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            match begin(&request) {
                Some(span) => record_response(client, request, span).await,
                None => client.send(request).await.map_err(BoxError::from),
            }
        }
    });
    Client::new(telling, namespace)
}

fn begin(request: &Request<Body>) -> Option<OpenSpan> {
    let path = request.uri().path();
    let target = TracedResource::from_path(path);
    let method = request.method().as_str();
    let mut span = OpenSpan::client(format!("{method} {}", target.resource))?;
    span.note(KeyValue::new("http.request.method", method.to_owned()));
    // Without the query: the path contains names of objects, and nothing else.
    span.note(KeyValue::new("url.path", path.to_owned()));
    if let Some(namespace) = target.namespace {
        span.note(KeyValue::new("k8s.namespace.name", namespace.to_owned()));
    }
    Some(span)
}

async fn record_response(
    client: Client,
    mut request: Request<Body>,
    mut span: OpenSpan,
) -> Result<http::Response<Body>, BoxError> {
    if let Ok(parent) = HeaderValue::try_from(span.traceparent()) {
        request.headers_mut().insert(TRACEPARENT, parent);
    }
    let is_read = request.method() == Method::GET;
    let answer = client.send(request).await.map_err(BoxError::from);
    match &answer {
        Ok(answer) => {
            let status = answer.status();
            span.note(KeyValue::new(
                "http.response.status_code",
                i64::from(status.as_u16()),
            ));
            // A missing object is an expected response.
            let is_found_missing = is_read && status == StatusCode::NOT_FOUND;
            let is_error = (status.is_client_error() || status.is_server_error()) && !is_found_missing;
            span.end(is_error.then(|| status.to_string()));
        }
        Err(error) => span.end(Some(error.to_string())),
    }
    answer
}
