//! Reading references, and what is wrong with them.

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

/// A reference to an object.
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

/// A reference to the answer of a server.
pub(super) fn http(key: &PolicyKey, http: &HttpReference, problems: &mut PolicyProblems) -> FetchedReference {
    let url = placeholders("url", &http.url, problems);
    check_url("url", url.leading_text(), url.is_plain(), problems);
    let mut params = Vec::new();
    for (name, value) in &http.params {
        let value = placeholders(&format!("params.{name}"), value, problems);
        params.push((name.clone(), value));
    }
    if http.body.is_some() && http.method == HttpMethod::Get {
        problems.note("body", "must not be given where method is GET");
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

/// The host has to end before the first value: an object must not say which server is asked.
fn check_url(name: &str, text: &str, is_whole: bool, problems: &mut PolicyProblems) {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let Some(rest) = rest else {
        return problems.note(name, "must begin with https:// or http://");
    };
    let end = rest.find(['/', '?', '#']);
    let host = &rest[..end.unwrap_or(rest.len())];
    if end.is_none() && !is_whole {
        problems.note(name, "the host must end before the first {{");
    } else if host.is_empty() {
        problems.note(name, "the host is missing");
    } else if host.contains('@') {
        problems.note(name, "must have no user name or password: use auth");
    } else if text.contains(|character: char| character.is_control() || character.is_whitespace()) {
        problems.note(name, "must have no spaces");
    }
}

fn check_auth(key: &PolicyKey, auth: &mut HttpAuth, problems: &mut PolicyProblems) {
    if !auth.auth_url.is_empty() {
        check_url("authUrl", &auth.auth_url, true, problems);
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
