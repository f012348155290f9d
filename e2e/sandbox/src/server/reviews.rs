//! Access and token reviews, which are evaluated and never stored.

use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    authentication::User,
    authorization,
    call::{Call, Reply, ResourcePath},
};
use crate::StatusError;

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The review kinds: group, kind, plural, namespaced.
pub(super) const REVIEWS: &[(&str, &str, &str, bool)] = &[
    (AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", false),
    (AUTHENTICATION, "TokenReview", "tokenreviews", false),
    (
        AUTHORIZATION,
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        true,
    ),
    (
        AUTHORIZATION,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        false,
    ),
    (
        AUTHORIZATION,
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        false,
    ),
    (
        AUTHORIZATION,
        "SubjectAccessReview",
        "subjectaccessreviews",
        false,
    ),
];

/// Handles a review; returns `None` for other paths.
pub(super) fn reply(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
) -> Result<Option<Reply>, StatusError> {
    let is_review = |row: &&(&str, &str, &str, bool)| row.0 == target.group && row.2 == target.resource;
    let Some((group, kind, ..)) = REVIEWS.iter().find(is_review) else {
        return Ok(None);
    };
    if target.version != "v1" || !target.name.is_empty() {
        return Ok(None);
    }
    if call.method != http::Method::POST {
        let message = "the server does not allow this method on the requested resource";
        return Err(StatusError::new(405, "MethodNotAllowed", message));
    }
    let mut review = call.object()?;
    review["apiVersion"] = json!(format!("{group}/v1"));
    review["kind"] = json!(kind);
    let spec = review["spec"].clone();
    review["status"] = match *kind {
        "SelfSubjectReview" => json!({"userInfo": call.user.info()}),
        "TokenReview" => match server.user_by_token(spec["token"].as_str().unwrap_or_default()) {
            Some(user) => json!({"authenticated": true, "user": user.info()}),
            None => json!({"authenticated": false, "error": "invalid bearer token"}),
        },
        "SelfSubjectAccessReview" => review_access(server, &call.user, &spec),
        "SelfSubjectRulesReview" => rules(server, &call.user, spec["namespace"].as_str().unwrap_or_default()),
        _ => review_access(server, &subject(&spec), &spec),
    };
    Ok(Some(Reply::Json {
        code: 201,
        body: review,
        warnings: Vec::new(),
    }))
}

fn subject(spec: &Value) -> User {
    let groups = spec["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        groups: groups.map(str::to_owned).collect(),
    }
}

fn review_access(server: &ApiServer, user: &User, spec: &Value) -> Value {
    let attributes = &spec["resourceAttributes"];
    let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
    let allowed = if attributes.is_object() {
        let target = ResourcePath {
            group: text("group"),
            version: text("version"),
            namespace: text("namespace"),
            resource: text("resource"),
            name: text("name"),
            subresource: text("subresource"),
        };
        authorization::allows(&server.shared().store, user, &text("verb"), &target)
    } else {
        let path = spec["nonResourceAttributes"]["path"].as_str().unwrap_or_default();
        let verb = spec["nonResourceAttributes"]["verb"].as_str().unwrap_or_default();
        authorization::allows_path(&server.shared().store, user, verb, path)
    };
    json!({"allowed": allowed})
}

fn rules(server: &ApiServer, user: &User, namespace: &str) -> Value {
    let rules = authorization::rules(&server.shared().store, user, namespace);
    let (others, resources): (Vec<Value>, Vec<Value>) = rules
        .into_iter()
        .partition(|rule| rule["nonResourceURLs"].is_array());
    json!({"resourceRules": resources, "nonResourceRules": others, "incomplete": false})
}
