//! Responses of webhook servers.

use std::any::Any;

use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use http_body_util::Full;
use hyper::body::Bytes;

/// A JSON response with status 200.
pub fn reply_json(body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    reply(StatusCode::OK, "application/json", body.into())
}

/// Returns a plain text response for an error.
pub fn reply_text(status: StatusCode, message: impl Into<Bytes>) -> Response<Full<Bytes>> {
    reply(status, "text/plain; charset=utf-8", message.into())
}

/// The response to a method other than POST.
pub fn only_post() -> Response<Full<Bytes>> {
    let mut response = reply_text(StatusCode::METHOD_NOT_ALLOWED, "only POST is supported");
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Returns the message of a panic, if it is a string.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or_default()
}

fn reply(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
