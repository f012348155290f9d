//! Retries of reads without a response, since the API server of the connection may have lost power.

use std::{future::Future, pin::pin, time::Duration};

use futures::future::{Either, select};
use http::{Method, Request};
use kube::Client;
use serde_json::Value;

/// The time without a response before a read is sent again. Idle connections have been closed by then, so it
/// uses a new one.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Sends a request. A read without a timely response is sent again, and the first response counts, so that a
/// slow API server has as long as before. Writes are not repeated: the first one may still be executed.
pub(crate) async fn send_with_retry(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<Value, kube::Error> {
    if request.method() != Method::GET {
        return client.request(request).await;
    }
    first_of_two(client.request(request.clone()), async {
        tokio::time::sleep(RETRY_AFTER).await;
        client.request(request).await
    })
    .await
}

async fn first_of_two<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    match select(pin!(one), pin!(other)).await {
        Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::client::Body;
    use parking_lot::Mutex;
    use tokio::time::{Instant, timeout};
    use tower::{BoxError, service_fn};

    use super::*;

    /// Sends a request to an API server with these response times. Returns the number of requests, and the
    /// seconds until the response.
    async fn send_with_delays(method: Method, delays: &'static [u64]) -> (usize, Option<u64>) {
        let requests = Arc::<Mutex<usize>>::default();
        let count = requests.clone();
        let service = service_fn(move |_: Request<Body>| {
            let mut requests = count.lock();
            let delay = Duration::from_secs(delays[*requests]);
            *requests += 1;
            async move {
                tokio::time::sleep(delay).await;
                Ok::<_, BoxError>(http::Response::new(Body::from(b"{}".to_vec())))
            }
        });
        let client = Client::new(service, "default");
        let request = Request::builder().method(method).uri("/version");
        let request = request.body(Vec::new()).unwrap();
        let started = Instant::now();
        let answer = timeout(Duration::from_secs(30), send_with_retry(&client, request)).await;
        let took = answer.is_ok().then(|| started.elapsed().as_secs());
        let requests = *requests.lock();
        (requests, took)
    }

    #[tokio::test(start_paused = true)]
    async fn reads_without_a_response_are_sent_again() {
        assert_eq!(send_with_delays(Method::GET, &[100, 1]).await, (2, Some(6)));
        assert_eq!(send_with_delays(Method::GET, &[1]).await, (1, Some(1)));
        assert_eq!(send_with_delays(Method::GET, &[100, 100]).await, (2, None));
        assert_eq!(send_with_delays(Method::PATCH, &[100]).await, (1, None));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_responses_are_awaited() {
        assert_eq!(send_with_delays(Method::GET, &[20, 20]).await, (2, Some(20)));
    }
}
