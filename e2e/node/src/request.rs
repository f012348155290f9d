//! Requests that are repeated until they succeed or can't.

use std::{future::Future, time::Duration};

/// The wait before a failed request is repeated.
const PAUSE: Duration = Duration::from_millis(250);

/// How long one attempt may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Repeats a request while the server cannot answer it; `None` when the object is gone or is another one.
pub(crate) async fn until_done<T, F>(what: &str, mut request: impl FnMut() -> F) -> Option<T>
where
    F: Future<Output = kube::Result<T>>,
{
    loop {
        match tokio::time::timeout(TIMEOUT, request()).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                tracing::debug!(what, status = %status.message, "Given up");
                return None;
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 400 | 403 | 422) => {
                tracing::warn!(what, status = %status.message, "Refused; trying again");
            }
            Ok(Err(error)) => tracing::debug!(what, %error, "Failed; trying again"),
            Err(_) => tracing::debug!(what, "Timed out; trying again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
