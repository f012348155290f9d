//! The client of watches: what kube's watcher would wait for as long as a connection lives has a limit.

use std::time::Duration;

use http::{Request, Response};
use kube::{Client, client::Body};
use thiserror::Error;
use tower::{BoxError, service_fn};

/// A list was not there in time, or a watch did not start.
#[derive(Debug, Error)]
#[error("no answer from the API server within {}s", .0.as_secs_f32())]
struct Unanswered(Duration);

/// The same client, which gives up on a list that is not there in time, and on a watch that does not start: kube's
/// watcher waits for both as long as the connection lives. It goes on by itself from where it was.
pub(crate) fn bounded_client(client: Client, limit: Duration) -> Client {
    let namespace = client.default_namespace().to_owned();
    let asking = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let answer = async move {
            let request = most_recent(request)?;
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

/// Asks for what there is now. kube's watcher streams a list from any version: the cache of an API server may be as old as it
/// likes then, and one that cannot convert the objects of a kind says that there are none.
fn most_recent(mut request: Request<Body>) -> Result<Request<Body>, BoxError> {
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
