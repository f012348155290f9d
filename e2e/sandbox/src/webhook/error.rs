//! Errors of webhook calls, with the messages of the real server (client-go's `rest` package).

use serde_json::Value;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The `clientConfig` cannot be used.
    #[error("{0}")]
    Client(String),
    /// The request got no response.
    #[error("Post {url:?}: {detail}")]
    Post {
        /// The URL.
        url: String,
        /// The cause.
        detail: String,
    },
    /// The response has an error status.
    #[error("{message}")]
    Status {
        /// The HTTP status code.
        code: u16,
        /// client-go's message for this status.
        message: String,
    },
    /// The response is not a JSON object with a kind.
    #[error("{0}")]
    Undecodable(String),
}

/// Fails unless the status code is a success.
pub(super) fn check(code: u16, body: &[u8]) -> Result<(), CallError> {
    if (200..300).contains(&code) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(body);
    let message = match code {
        400..500 if serde_json::from_slice::<Value>(body).is_ok_and(|body| body["kind"] == "Status") => {
            serde_json::from_slice::<Value>(body)
                .ok()
                .and_then(|status| Some(status.get("message")?.as_str()?.to_owned()))
                .unwrap_or_default()
        }
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => "forbidden".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                request"
            .to_owned(),
        500.. => format!("an error on the server ({:?}) has prevented the request from succeeding", text.trim()),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    };
    Err(CallError::Status { code, message })
}

/// Parses the response as a JSON object.
pub(super) fn decode(body: &[u8]) -> Result<Value, CallError> {
    let shape = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }";
    let failed = |problem: String| {
        CallError::Undecodable(format!("couldn't get version/kind; json parse error: {problem}"))
    };
    match serde_json::from_slice::<Value>(body) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(Value::Array(_)) => Err(failed(format!(
            "json: cannot unmarshal array into Go value of type {shape}"
        ))),
        // Text that is not JSON is parsed as YAML, where any text is a string.
        Ok(_) | Err(_) => Err(failed(format!(
            "json: cannot unmarshal string into Go value of type {shape}"
        ))),
    }
}
