//! The answer of the Discovery hook: the hooks that a server answers, and their handlers.
//!
//! An answer is validated as Cluster API does (`internal/runtime/client/client.go`), except for hooks that
//! the catalog does not have. In a group that the catalog has, they are skipped and reported, since a server
//! may be newer than its caller. In another group they are custom hooks, and are accepted.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use thiserror::Error;
use windlass_object::{rfc1123::is_label, text};

use crate::{
    Catalog, Hook, HookReference,
    cluster_api::{Discovery, GROUP, VERSION},
    go_json::{field, first_value},
};

/// A valid answer of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// The handlers, sorted by name.
    pub handlers: Vec<Handler>,
    /// Handlers of unknown hooks, sorted by name: each `name` with its `hook`. They are not called.
    pub unknown: Vec<(String, HookReference)>,
    /// The [`Self::handlers`] of a deprecated version, sorted by name: each `name` with its `hook`.
    pub deprecated: Vec<(String, HookReference)>,
}

/// A handler of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The name, a DNS label that is unique in the server.
    pub name: String,
    /// The hook that it answers.
    pub hook: HookReference,
    /// The timeout in seconds, 1 to 30. [`None`] if the server sent 0, which means 10.
    pub timeout_seconds: Option<i32>,
    /// How callers treat a failed call.
    pub failure_policy: FailurePolicy,
}

/// How callers treat a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The operation fails.
    Fail,
    /// The operation continues as if the response were empty.
    Ignore,
}

/// Why an answer is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum DiscoveryError {
    /// The answer is not JSON.
    #[error("the answer is not JSON: {0}")]
    NotJson(
        /// The parse error.
        String,
    ),
    /// The server reports a failure.
    #[error("got failure response with message: {0}")]
    Failure(String),
    /// The server's status is neither success nor failure.
    #[error("got unknown response status {status:?} with message: {message}")]
    UnknownStatus { status: String, message: String },
    /// Handlers are invalid.
    #[error("{}", .0.join("; "))]
    Invalid(
        /// All problems, each with its field.
        Vec<String>,
    ),
}

/// The longest timeout of a handler, in seconds.
const LONGEST_TIMEOUT: i64 = 30;

/// The default timeout of a handler, in seconds.
const DEFAULT_TIMEOUT: i64 = 10;

/// The maximum number of handlers in the status of an ExtensionConfig.
const MOST_HANDLERS: usize = 512;

/// Characters of a server's text that an error quotes.
const LONGEST_MESSAGE: usize = 512;

/// The maximum number of reported problems.
const MOST_PROBLEMS: usize = 20;

/// The body of a Discovery request.
pub fn request() -> Value {
    json!({ "kind": "DiscoveryRequest", "apiVersion": format!("{GROUP}/{VERSION}") })
}

/// The path of the Discovery hook, below that of the ExtensionConfig.
pub fn path() -> String {
    Discovery::reference().path()
}

/// Parses an answer with the hooks of `catalog`. The handlers are sorted by name, because servers written in
/// Go list them in random order.
///
/// # Errors
///
/// When the server did not succeed, or a handler is invalid.
pub fn read_answer(body: &[u8], catalog: &Catalog) -> Result<Discovered, DiscoveryError> {
    let answer = first_value(body).map_err(|error| DiscoveryError::NotJson(error.to_string()))?;
    let Value::Object(answer) = &answer else {
        return Err(DiscoveryError::NotJson("it must be an object".into()));
    };
    let text_field = |name| field(answer, name).and_then(Value::as_str).unwrap_or_default();
    let message = || excerpt(text_field("message"));
    match text_field("status") {
        "Success" => {}
        "Failure" => return Err(DiscoveryError::Failure(message())),
        status => {
            return Err(DiscoveryError::UnknownStatus {
                status: excerpt(status),
                message: message(),
            });
        }
    }
    let mut problems = Vec::new();
    let mut handlers = match field(answer, "handlers") {
        None => Vec::new(),
        Some(Value::Array(items)) if items.len() > MOST_HANDLERS => {
            problems.push(format!(
                "handlers: {} items, at most {MOST_HANDLERS} are allowed",
                items.len()
            ));
            Vec::new()
        }
        Some(Value::Array(items)) => {
            let items = items.iter().enumerate();
            let read = |(index, item): (usize, &Value)| read_handler(item, index, &mut problems);
            items.filter_map(read).collect()
        }
        Some(_) => {
            problems.push("handlers: must be a list".into());
            Vec::new()
        }
    };
    let mut names = BTreeSet::new();
    for handler in &handlers {
        if !names.insert(&handler.name) {
            problems.push(format!("handlers: duplicate name {:?}", handler.name));
        }
    }
    let more = problems.len().saturating_sub(MOST_PROBLEMS);
    if more > 0 {
        problems.truncate(MOST_PROBLEMS);
        problems.push(format!("and {more} more"));
    }
    if !problems.is_empty() {
        return Err(DiscoveryError::Invalid(problems));
    }
    handlers.sort_by(|one, other| one.name.cmp(&other.name));
    let groups: BTreeSet<_> = catalog.hooks().map(|hook| hook.reference().group()).collect();
    let is_known =
        |handler: &Handler| catalog.get(&handler.hook).is_some() || !groups.contains(handler.hook.group());
    let (handlers, unknown): (Vec<_>, Vec<_>) = handlers.into_iter().partition(is_known);
    let is_deprecated = |handler: &&Handler| {
        let hook = catalog.get(&handler.hook);
        hook.is_some_and(|hook| hook.metadata().deprecated)
    };
    let named = |handler: &Handler| (handler.name.clone(), handler.hook.clone());
    Ok(Discovered {
        unknown: unknown.iter().map(named).collect(),
        deprecated: handlers.iter().filter(is_deprecated).map(named).collect(),
        handlers,
    })
}

fn read_handler(item: &Value, index: usize, problems: &mut Vec<String>) -> Option<Handler> {
    let known = problems.len();
    let place = format!("handlers[{index}]");
    let Value::Object(item) = item else {
        problems.push(format!("{place}: must be an object"));
        return None;
    };
    let nothing = Map::new();
    let request_hook = match field(item, "requestHook") {
        Some(Value::Object(hook)) => hook,
        None => &nothing,
        Some(_) => {
            problems.push(format!("{place}.requestHook: must be an object"));
            return None;
        }
    };
    let name = string(item, "name", &place, problems);
    if !is_label(&name) {
        problems.push(format!("{place}.name: {:?} must be a DNS label", excerpt(&name)));
    }
    let hook = HookReference {
        api_version: string(request_hook, "apiVersion", &place, problems),
        hook: string(request_hook, "hook", &place, problems),
    };
    if let Some(problem) = hook_problem(&hook) {
        problems.push(format!("{place}.requestHook: {problem}"));
    }
    let timeout = match field(item, "timeoutSeconds") {
        None => DEFAULT_TIMEOUT,
        Some(timeout) => timeout.as_i64().unwrap_or(-1),
    };
    if !(0..=LONGEST_TIMEOUT).contains(&timeout) {
        problems.push(format!("{place}.timeoutSeconds: must be 0 to {LONGEST_TIMEOUT}"));
    }
    let failure_policy = match field(item, "failurePolicy").map(Value::as_str) {
        None | Some(Some("Fail")) => FailurePolicy::Fail,
        Some(Some("Ignore")) => FailurePolicy::Ignore,
        Some(_) => {
            problems.push(format!("{place}.failurePolicy: must be Fail or Ignore"));
            FailurePolicy::Fail
        }
    };
    (problems.len() == known).then(|| Handler {
        name,
        hook,
        timeout_seconds: i32::try_from(timeout).ok().filter(|seconds| *seconds > 0),
        failure_policy,
    })
}

/// Returns the problem of a hook's names, if any.
fn hook_problem(hook: &HookReference) -> Option<String> {
    if !hook.has_group_and_version() {
        let api_version = excerpt(&hook.api_version);
        return Some(format!(
            "apiVersion {api_version:?} must have the form <group>/<version>"
        ));
    }
    (!hook.has_name()).then(|| format!("hook {:?} must be the name of a hook", excerpt(&hook.hook)))
}

/// Returns the string in a field; adds a problem if it is not a string.
fn string(object: &Map<String, Value>, name: &str, place: &str, problems: &mut Vec<String>) -> String {
    match field(object, name) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            problems.push(format!("{place}: {name} must be a string"));
            String::new()
        }
    }
}

/// Returns the beginning of a server's text as one line.
fn excerpt(text: &str) -> String {
    text::tidied(text).chars().take(LONGEST_MESSAGE).collect()
}

impl Handler {
    /// Returns the handler for the status of the ExtensionConfig `config`, where its name includes that of
    /// the ExtensionConfig.
    pub fn to_status(&self, config: &str) -> Value {
        let mut status = json!({
            "name": format!("{}.{config}", self.name),
            "requestHook": { "apiVersion": self.hook.api_version, "hook": self.hook.hook },
            "failurePolicy": self.failure_policy.as_str(),
        });
        if let Some(seconds) = self.timeout_seconds {
            status["timeoutSeconds"] = seconds.into();
        }
        status
    }
}

impl FailurePolicy {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}
