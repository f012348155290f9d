//! Parses and validates references.

use windlass_object::GoDuration;

use super::{
    placeholder::PlaceholderText,
    rule_references::{FetchedReference, RequestReference, label_values},
};
use crate::{
    PolicyKey,
    api::{HttpAuth, HttpMethod, HttpReference, ResourceSelector},
    problem::PolicyProblems,
    selection,
};

/// Parses a reference to an object.
pub(super) fn object(
    key: &PolicyKey,
    selector: &ResourceSelector,
    problems: &mut PolicyProblems,
) -> FetchedReference {
    selection::check(selector, problems);
    if selector.name.is_empty() && selector.label_selector.is_none() && selector.field_selector.is_none() {
        problems.note("", "must have name, labelSelector or fieldSelector");
    }
    let mut labels = selector.label_selector.clone().unwrap_or_default();
    for value in label_values(&mut labels) {
        placeholders("labelSelector", value.as_str().unwrap_or_default(), problems);
    }
    let namespace = placeholders("namespace", &selector.namespace, problems);
    if !key.namespace.is_empty()
        && namespace.is_plain()
        && ![key.namespace.as_str(), ""].contains(&&*selector.namespace)
    {
        let message = format!(
            "must be empty or {:?}: an OverridePolicy refers to objects of its own namespace only",
            key.namespace
        );
        problems.note("namespace", message);
    }
    FetchedReference::Object {
        namespace,
        name: placeholders("name", &selector.name, problems),
        selector: Box::new(selector.clone()),
        is_confined: !key.namespace.is_empty(),
    }
}

/// Parses a reference to the response of a server.
pub(super) fn http(key: &PolicyKey, http: &HttpReference, problems: &mut PolicyProblems) -> FetchedReference {
    let url = placeholders("url", &http.url, problems);
    check_start("url", &url, problems);
    let mut params = Vec::new();
    for (name, value) in &http.params {
        let value = placeholders(&format!("params.{name}"), value, problems);
        params.push((name.clone(), value));
    }
    if http.body.is_some() && http.method == HttpMethod::Get {
        problems.note("body", "must not be set with method: GET");
    }
    for (name, value) in &http.header {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            problems.note("header", format!("{name:?} is not a name of a header"));
        }
        if value.contains(['\r', '\n', '\0']) {
            problems.note(format!("header.{name}"), "must be one line");
        }
    }
    let mut reference = http.clone();
    if let Some(auth) = &mut reference.auth {
        problems.within("auth", |problems| check_auth(key, auth, problems));
    }
    FetchedReference::Http(Box::new(RequestReference {
        url,
        params,
        reference,
    }))
}

/// Requires that the host ends before the first placeholder: an object must not choose the server.
fn check_start(name: &str, url: &PlaceholderText, problems: &mut PolicyProblems) {
    let text = url.leading_text();
    let is_open = |rest: &str| !rest.contains(['/', '?', '#']);
    let is_early = text.split_once("://").is_some_and(|(_, rest)| is_open(rest));
    match check_url(text) {
        _ if is_early && !url.is_plain() => problems.note(name, "the host must end before the first {{"),
        Ok(()) => {}
        Err(error) => problems.note(name, error),
    }
}

/// Validates the beginning of a URL.
pub(crate) fn check_url(text: &str) -> Result<(), &'static str> {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .ok_or("must begin with https:// or http://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() {
        return Err("the host is missing");
    }
    if host.contains('@') {
        return Err("must have no user name or password: use auth");
    }
    if text.contains(|character: char| character.is_control() || character.is_whitespace()) {
        return Err("must have no spaces");
    }
    Ok(())
}

fn check_auth(key: &PolicyKey, auth: &mut HttpAuth, problems: &mut PolicyProblems) {
    if !auth.auth_url.is_empty()
        && let Err(error) = check_url(&auth.auth_url)
    {
        problems.note("authUrl", error);
    }
    if !auth.expire_duration.is_empty() && auth.expire_duration.parse::<GoDuration>().is_err() {
        problems.note("expireDuration", "is not a duration: use for example 10m");
    }
    let Some(secret) = &mut auth.secret_ref else {
        return;
    };
    match (key.namespace.as_str(), secret.namespace.as_str()) {
        ("", "") => problems.note("secretRef.namespace", "must be given: the policy has none"),
        (own, "") => own.clone_into(&mut secret.namespace),
        (own, other) if !own.is_empty() && own != other => {
            let message =
                format!("must be empty or {own:?}: an OverridePolicy refers to its own namespace only");
            problems.note("secretRef.namespace", message);
        }
        _ => {}
    }
}

fn placeholders(name: &str, text: &str, problems: &mut PolicyProblems) -> PlaceholderText {
    PlaceholderText::parse(text).unwrap_or_else(|error| {
        problems.note(name, error);
        PlaceholderText::default()
    })
}
