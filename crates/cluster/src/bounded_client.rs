//! The client of watches, with a time limit for lists and for the start of watches; kube's watcher has none.

use std::time::Duration;

use http::{Request, Response};
use kube::{Client, client::Body};
use thiserror::Error;
use tower::{BoxError, service_fn};

/// A list or the start of a watch timed out.
#[derive(Debug, Error)]
#[error("no answer from the API server within {}s", .0.as_secs_f32())]
struct Unanswered(Duration);

/// Returns a client that fails if a list is not complete, or a watch has not started, within `limit`: kube's
/// watcher would wait for both as long as the connection exists. It then resumes automatically.
pub(crate) fn bounded_client(client: Client, limit: Duration) -> Client {
    let namespace = client.default_namespace().to_owned();
    let asking = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let answer = async move {
            let request = request_most_recent(request)?;
            let is_watch = is_watch(&request);
            let answer = client.send(request).await?;
            if is_watch {
                return Ok(answer);
            }
            let (head, body) = answer.into_parts();
            Ok::<_, BoxError>(Response::from_parts(
                head,
                Body::from(body.collect_bytes().await?),
            ))
        };
        async move {
            let answer: Result<_, BoxError> = tokio::time::timeout(limit, answer)
                .await
                .map_err(|_| Unanswered(limit))?;
            answer
        }
    });
    Client::new(asking, namespace)
}

/// Requests the most recent state. kube's watcher streams a list from any version: the cache of an API server
/// may then be arbitrarily old, and a cache that cannot convert the objects of a kind reports none.
fn request_most_recent(mut request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    if query
        .split('&')
        .any(|parameter| parameter == "sendInitialEvents=true")
    {
        let parameters = query
            .split('&')
            .filter(|parameter| *parameter != "resourceVersion=0");
        let query = parameters.collect::<Vec<_>>().join("&");
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(format!("{}?{query}", uri.path()).parse()?);
        *request.uri_mut() = parts.try_into()?;
    }
    Ok(request)
}

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| parameter == "watch=true")
}
