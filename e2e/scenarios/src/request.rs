//! Plain requests to an API server, with the complete answer.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::Context;
use http::{Request, header, response::Parts};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::{Client, client::Body};
use serde_json::Value;

/// How long a client retries requests that the API server itself rejects.
pub const RETRY_LIMIT: Duration = Duration::from_secs(30);

const JSON: &str = "application/json";

/// An answer of the API server, successful or not.
#[derive(Clone, Debug)]
pub struct RequestAnswer {
    /// The HTTP status code.
    pub code: u16,
    /// The body; null if it is not JSON.
    pub body: Value,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The warnings (RFC 7234, 5.5).
    pub warnings: Vec<String>,
}

/// Sends one request without retries.
///
/// A `PATCH` is a JSON patch if `body` is a list, else a merge patch.
///
/// # Errors
///
/// Fails if no complete answer arrives.
pub async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<RequestAnswer> {
    let content_type = match (method, body) {
        ("PATCH", Some(Value::Array(_))) => "application/json-patch+json",
        ("PATCH", _) => "application/merge-patch+json",
        _ => JSON,
    };
    exchange(client, method, path, (content_type, JSON), body)
        .await
        .map(RequestAnswer::from)
}

/// Applies an object as `manager`, without retries. With `force`, takes over fields of other managers.
///
/// # Errors
///
/// As [`send`].
pub async fn apply(
    client: &Client,
    path: &str,
    manager: &str,
    force: bool,
    object: &Value,
) -> anyhow::Result<RequestAnswer> {
    let path = format!("{path}?fieldManager={manager}&force={force}");
    exchange(
        client,
        "PATCH",
        &path,
        ("application/apply-patch+yaml", JSON),
        Some(object),
    )
    .await
    .map(RequestAnswer::from)
}

/// Reads the collection or object at `path` in the form that `accept` requests: one JSON value, or the events
/// of a watch until the API server ends it.
///
/// # Errors
///
/// Fails if the API server answers with an error, or not with JSON.
pub async fn read_as(client: &Client, path: &str, accept: &str) -> anyhow::Result<Vec<Value>> {
    let (head, bytes) = exchange(client, "GET", path, (JSON, accept), None).await?;
    let code = head.status.as_u16();
    anyhow::ensure!(
        code == 200,
        "GET {path} as {accept}: HTTP {code}: {}",
        String::from_utf8_lossy(&bytes)
    );
    let values = serde_json::Deserializer::from_slice(&bytes).into_iter();
    values
        .collect::<Result<_, _>>()
        .with_context(|| format!("GET {path} as {accept}"))
}

/// Opens the watch at `path`. The returned future waits until the API server ends the watch.
///
/// # Errors
///
/// Fails if the API server rejects the watch; the future fails if the connection breaks.
pub async fn watch(client: &Client, path: &str) -> anyhow::Result<impl Future<Output = anyhow::Result<()>>> {
    let request = Request::builder().uri(path).body(Body::empty())?;
    let response = client.send(request).await.context("no answer")?;
    anyhow::ensure!(response.status() == 200, "GET {path}: HTTP {}", response.status());
    let mut events = Box::pin(response.into_body());
    Ok(async move {
        while let Some(event) = events.frame().await {
            event.context("the watch was cut off")?;
        }
        Ok(())
    })
}

/// The head and the body of one answer.
async fn exchange(
    client: &Client,
    method: &str,
    path: &str,
    (content_type, accept): (&str, &str),
    body: Option<&Value>,
) -> anyhow::Result<(Parts, Bytes)> {
    let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::ACCEPT, accept)
        .body(Body::from(bytes))?;
    let response = client.send(request).await.context("no answer")?;
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.context("the answer was cut off")?.to_bytes();
    Ok((head, bytes))
}

/// Sends a request, and retries while the API server requests that after a change of a CRD: see
/// [`RequestAnswer::is_reinitializing`].
///
/// # Errors
///
/// Fails if no answer arrives.
pub async fn send_patiently(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<RequestAnswer> {
    let started = Instant::now();
    loop {
        let answer = send(client, method, path, body).await?;
        if !answer.is_reinitializing() || started.elapsed() > RETRY_LIMIT {
            return Ok(answer);
        }
        tokio::time::sleep(answer.pause()).await;
    }
}

/// Checks whether the API server is ready.
///
/// # Errors
///
/// Returns the API server's answer if it is not ready.
pub async fn ready(client: &Client) -> Result<(), String> {
    match send(client, "GET", "/readyz", None).await {
        Ok(answer) if answer.code == 200 => Ok(()),
        Ok(answer) => Err(answer.to_string()),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// The string at a JSON pointer; empty if there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A resourceVersion as a number, which it is since Kubernetes 1.35 (KEP-5504).
pub fn version_number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

impl From<(Parts, Bytes)> for RequestAnswer {
    fn from((head, bytes): (Parts, Bytes)) -> Self {
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let warnings = head.headers.get_all(header::WARNING).iter();
        Self {
            code: head.status.as_u16(),
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            retry_after: retry_after
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map(Duration::from_secs),
            warnings: warnings
                .filter_map(|value| warning(std::str::from_utf8(value.as_bytes()).ok()?))
                .collect(),
        }
    }
}

/// The text of a `Warning`; API servers send code 299 and no agent: `299 - "text"`.
fn warning(value: &str) -> Option<String> {
    let quoted = value.strip_prefix("299 - \"")?.strip_suffix('"')?;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' {
            characters.next()?
        } else {
            character
        });
    }
    Some(text)
}

impl RequestAnswer {
    /// The pause before a retry.
    pub fn pause(&self) -> Duration {
        self.retry_after.unwrap_or(Duration::from_secs(1))
    }

    /// The `message` of a `Status`.
    pub fn message(&self) -> &str {
        text(&self.body, "/message")
    }

    /// Whether an admission webhook denied the request.
    pub fn is_denied(&self) -> bool {
        self.message().contains("denied the request")
    }

    /// Whether the API server reports that it, or its storage, is down or starting. Errors of webhooks and
    /// conversions name them.
    pub fn is_outage(&self) -> bool {
        let message = self.message();
        let of_a_webhook = message.contains("webhook") || message.contains("conversion");
        let own = match self.code {
            429 | 503 | 504 => true,
            // Errors of the etcd client, for example "etcdserver: request timed out".
            500 => message.contains("etcd"),
            // After a start, admission waits for its watches.
            403 => message.contains("not yet ready to handle request"),
            _ => false,
        };
        own && !of_a_webhook && !self.is_reinitializing()
    }

    /// Whether the API server does not know the Service of a webhook: it starts to answer before its watch of
    /// Services has synced.
    pub fn is_service_unknown(&self) -> bool {
        let message = self.message();
        self.code == 500 && message.contains(": service \"") && message.ends_with("\" not found")
    }

    /// Whether the API server does not serve the version of the resource, rather than not know the object `name`.
    pub fn is_version_unserved(&self, name: &str) -> bool {
        self.code == 404 && !self.message().contains(name)
    }

    /// Whether this is the API server's own pause after a change of a CRD. Lists wait for the new storage,
    /// and `WithWaitGroup` rejects a request that holds the old one, as if the server shut down. Both answers
    /// have `Retry-After`, which client-go and kube obey.
    pub fn is_reinitializing(&self) -> bool {
        let waits_for_storage = self.code == 429 && self.message().contains("storage is (re)initializing");
        let lost_storage = self.code == 503 && self.message() == "apiserver is shutting down";
        waits_for_storage || lost_storage
    }
}

impl fmt::Display for RequestAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}: {}", self.code, self.message())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warning_is_read_as_it_was_meant() {
        assert_eq!(warning("299 - \"a: b\""), Some("a: b".to_owned()));
        assert_eq!(
            warning(r#"299 - "say \"a\\b\"""#),
            Some(r#"say "a\b""#.to_owned())
        );
        assert_eq!(warning("199 - \"a\""), None);
        assert_eq!(warning("299 - a"), None);
    }

    #[test]
    fn an_unserved_version_is_told_from_a_missing_object() {
        let is_unserved = |code, body: Value| {
            let answer = RequestAnswer {
                code,
                body,
                retry_after: None,
                warnings: Vec::new(),
            };
            answer.is_version_unserved("load-1")
        };
        // The body "404 page not found" is not JSON.
        assert!(is_unserved(404, Value::Null));
        assert!(is_unserved(
            404,
            json!({"message": "the server could not find the requested resource"})
        ));
        assert!(!is_unserved(
            404,
            json!({"message": "widgets.example.com \"load-1\" not found"})
        ));
        assert!(!is_unserved(500, Value::Null));
    }

    #[test]
    fn a_service_that_is_not_known_is_told_from_other_failures_of_webhooks() {
        let is_unknown = |code, message: &str| {
            let body = json!({"kind": "Status", "message": message});
            let answer = RequestAnswer {
                code,
                body,
                retry_after: None,
                warnings: Vec::new(),
            };
            assert!(!answer.is_outage(), "{message}");
            answer.is_service_unknown()
        };
        let call = "Post \"https://hook.system.svc:443/convert?timeout=30s\"";
        let conversion = format!("conversion webhook for example.com/v1, Kind=A failed: {call}");
        assert!(is_unknown(
            500,
            &format!("{conversion}: service \"hook\" not found")
        ));
        let admission = format!("Internal error occurred: failed calling webhook \"a.example.com\": {call}");
        assert!(is_unknown(
            500,
            &format!("{admission}: service \"hook\" not found")
        ));
        assert!(!is_unknown(
            500,
            &format!("{conversion}: connect: connection refused")
        ));
        assert!(!is_unknown(404, "services \"hook\" not found"));
    }
}
