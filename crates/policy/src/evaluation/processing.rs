//! The request that a CUE program describes: the response to `processing.http` becomes `processing.output`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::failure::{FailureReason, RuleStop};
use crate::{
    Answers, DataReference, FetchedAnswer, HttpRequest, RuleStep, api::HttpMethod, reference::check_url,
};

/// Returns `processing` of a program with the fetched response; `None` if it describes no request.
pub(super) fn with_output(processing: &Value, answers: &Answers) -> Result<Option<Value>, RuleStop> {
    let failed = |message: String| RuleStop::Failed(FailureReason::Step(RuleStep::Cue), message);
    let Some(http) = processing.get("http").filter(|http| !http.is_null()) else {
        return Ok(None);
    };
    let reference = parse_request(http)
        .map(DataReference::Http)
        .map_err(|error| failed(format!("processing.http{error}")))?;
    match answers.get(&reference) {
        None => Err(RuleStop::Missing(vec![reference])),
        Some(FetchedAnswer::Found(body @ Value::Object(_))) => Ok(Some(json!({ "output": body }))),
        Some(FetchedAnswer::Found(_)) => Err(failed(format!("{reference}: the answer is not an object"))),
        Some(FetchedAnswer::NotFound) => Err(failed(format!("{reference} not found"))),
        Some(FetchedAnswer::Failed(error)) => Err(failed(format!("{reference}: {error}"))),
    }
}

fn parse_request(http: &Value) -> Result<HttpRequest, String> {
    let text = |name: &str| http.get(name).and_then(Value::as_str).unwrap_or_default();
    let method = match text("method") {
        "" | "GET" => HttpMethod::Get,
        "POST" => HttpMethod::Post,
        _ => return Err(".method: must be GET or POST".into()),
    };
    let url = text("url");
    check_url(url).map_err(|error| format!(".url: {error}"))?;
    if http.get("tls_config").is_some() {
        return Err(
            ".tls_config: is not supported; configure trusted CAs for the policy server instead".into(),
        );
    }
    let mut headers = BTreeMap::new();
    let request = http.get("request").unwrap_or(&Value::Null);
    for (name, value) in request
        .get("header")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let Value::String(value) = value else {
            return Err(format!(".request.header.{name}: must be a string"));
        };
        headers.insert(name.clone(), value.clone());
    }
    let body = match request.get("body") {
        None | Some(Value::Null) => None,
        // JSON is sent as JSON.
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(body) => Some(body),
            Err(_) => return Err(".request.body: must be JSON".into()),
        },
        Some(body) => Some(body.clone()),
    };
    if body.is_some() && method == HttpMethod::Get {
        return Err(".request.body: must not be set with method: GET".into());
    }
    Ok(HttpRequest {
        method,
        url: url.to_owned(),
        headers,
        body,
        auth: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_requests_are_reported() {
        for (http, expected) in [
            (json!({}), ".url: must begin with https:// or http://"),
            (
                json!({"url": "https://a", "method": "PUT"}),
                ".method: must be GET or POST",
            ),
            (
                json!({"url": "https://a", "tls_config": {}}),
                ".tls_config: is not supported; configure trusted CAs for the policy server instead",
            ),
            (
                json!({"url": "https://a", "request": {"header": {"a": 1}}}),
                ".request.header.a: must be a string",
            ),
            (
                json!({"url": "https://a", "method": "POST", "request": {"body": "{"}}),
                ".request.body: must be JSON",
            ),
            (
                json!({"url": "https://a", "request": {"body": "{}"}}),
                ".request.body: must not be set with method: GET",
            ),
        ] {
            assert_eq!(parse_request(&http).unwrap_err(), expected);
        }
        let http = json!({"url": "https://a/b", "method": "POST", "request": {"body": "{\"a\": 1}", "header": {"x": "y"}}});
        let request = parse_request(&http).unwrap();
        assert_eq!(
            (request.body, request.headers["x"].as_str()),
            (Some(json!({"a": 1})), "y")
        );
    }
}
