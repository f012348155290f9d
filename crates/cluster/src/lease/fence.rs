//! The fence: every write asks whether this process leads.

use http::{Method, Request};
use kube::{
    Client,
    client::{Body, retry::RetryPolicy},
};
use tower::{BoxError, retry::Retry, service_fn};

use super::Leadership;

/// A client that sends through `client`, and writes only while this process leads: else it answers
/// [`NotLeading`](super::NotLeading).
///
/// Tries again by itself what the API server has no time for (429, 503, 504), with the pauses that it asks for, and asks
/// anew at each try. Therefore `client` must not: see [`kube::Config::default_retry`].
pub fn fenced(client: Client, leadership: Leadership) -> Client {
    let namespace = client.default_namespace().to_owned();
    let asking = service_fn(move |request: Request<Body>| {
        let (client, leadership) = (client.clone(), leadership.clone());
        async move {
            if is_write(request.method()) {
                leadership.check()?;
            }
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(Retry::new(RetryPolicy::server_retry(), asking), namespace)
}

fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
