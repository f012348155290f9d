//! Counter of requests to API servers, under client-go's name.

use http::{Method, Request};
use kube::{Client, client::Body};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tower::{BoxError, service_fn};

/// The number of requests to API servers, by response.
#[derive(Clone, Debug, Default)]
pub struct ApiRequests {
    answered: Family<ApiRequest, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ApiRequest {
    method: &'static str,
    code: String,
}

/// The code of a request without a response.
const NO_RESPONSE: &str = "<error>";

impl ApiRequests {
    /// Returns a client that sends through `client`, and counts each attempt.
    pub fn count_requests(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let requests = self.clone();
        let counting = service_fn(move |request: Request<Body>| {
            let (client, requests) = (client.clone(), requests.clone());
            async move {
                let method = method(request.method());
                let answer = client.send(request).await.map_err(BoxError::from);
                let code = match &answer {
                    Ok(answer) => answer.status().as_str().to_owned(),
                    Err(_) => NO_RESPONSE.to_owned(),
                };
                let counted = ApiRequest { method, code };
                requests.answered.get_or_create(&counted).inc();
                answer
            }
        });
        Client::new(counting, namespace)
    }

    /// Registers the counter in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "rest_client_requests",
            "Requests to API servers by method and HTTP code",
            self.answered.clone(),
        );
    }
}

/// Returns the method from a fixed set, to limit the number of series.
fn method(method: &Method) -> &'static str {
    [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ]
    .iter()
    .zip(["GET", "POST", "PUT", "PATCH", "DELETE"])
    .find_map(|(known, name)| (method == known).then_some(name))
    .unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use http::{Response, StatusCode};

    use super::*;
    use crate::telemetry::Metrics;

    #[tokio::test]
    async fn every_attempt_is_counted_by_method_and_code() {
        let server = service_fn(|request: Request<Body>| async move {
            match *request.method() {
                Method::GET => Ok(Response::new(Body::empty())),
                Method::PATCH => Err("connection reset"),
                _ => {
                    let mut answer = Response::new(Body::empty());
                    *answer.status_mut() = StatusCode::CONFLICT;
                    Ok(answer)
                }
            }
        });
        let requests = ApiRequests::default();
        let client = requests.count_requests(Client::new(server, "default"));
        for method in ["GET", "GET", "PUT", "PATCH", "TRACE"] {
            let request = Request::builder()
                .method(method)
                .uri("/version")
                .body(Body::empty());
            let _ = client.send(request.unwrap()).await;
        }
        let metrics = Metrics::new();
        metrics.extend(|registry| requests.register(registry));
        let text = metrics.text().unwrap();
        for counted in [
            r#"{method="GET",code="200"} 2"#,
            r#"{method="PUT",code="409"} 1"#,
            r#"{method="PATCH",code="<error>"} 1"#,
            r#"{method="other",code="409"} 1"#,
        ] {
            let line = format!("\nrest_client_requests_total{counted}\n");
            assert!(text.contains(&line), "{text}");
        }
    }
}
