//! The fence: every write requires leadership.

use http::{Method, Request};
use kube::{
    Client,
    client::{Body, retry::RetryPolicy},
};
use tower::{BoxError, retry::Retry, service_fn};

use super::Leadership;

/// Returns a client that sends through `client`, and writes only while this process leads: otherwise it
/// returns [`NotLeading`](super::NotLeading).
///
/// Retries requests that the API server rejects as overloaded (429, 503, 504), with the delays that it
/// requests, and checks leadership at each attempt. Therefore `client` must not retry: see
/// [`kube::Config::default_retry`].
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
