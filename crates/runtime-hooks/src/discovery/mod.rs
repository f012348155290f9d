//! The Discovery hook: a server says which hooks it answers, by which handlers.
//!
//! What is required of an answer is what Cluster API requires (`internal/runtime/client/client.go`), but for hooks that the catalog
//! does not know: of a group that it knows they are left out and told, since a server may be newer than who asks it; of another
//! group they are anybody's own, and taken as they are.

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

/// What a server answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// By name.
    pub handlers: Vec<Handler>,
    /// Those of hooks that nobody knows here, by name: each `name` with its `hook`. Nobody calls them.
    pub unknown: Vec<(String, HookReference)>,
    /// Those of [`Self::handlers`] that answer a version which is deprecated, by name: each `name` with its `hook`.
    pub deprecated: Vec<(String, HookReference)>,
}

/// What answers a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// A DNS label, once in an answer.
    pub name: String,
    /// What it answers.
    pub hook: HookReference,
    /// How long an answer may take, in seconds: 1 to 30. [`None`] where the server asks for 0, which readers take for 10.
    pub timeout_seconds: Option<i32>,
    /// What a call that fails means.
    pub failure_policy: FailurePolicy,
}

/// What a call that fails means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The caller cannot go on.
    Fail,
    /// The caller goes on as if the handler had nothing to say.
    Ignore,
}

/// Why an answer says nothing of what a server answers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiscoveryError {
    /// It is not JSON.
    #[error("the answer is not JSON: {0}")]
    NotJson(
        /// What is wrong.
        String,
    ),
    /// The server says that it failed.
    #[error("got failure response with message: {0}")]
    Failure(
        /// What it says beside that.
        String,
    ),
    /// The server says neither that it failed nor that it did not.
    #[error("got unknown response status {status:?} with message: {message}")]
    UnknownStatus {
        /// What it says.
        status: String,
        /// What it says beside that.
        message: String,
    },
    /// Its handlers are not what they must be: everything that is wrong with them.
    #[error("{}", .0.join("; "))]
    Invalid(
        /// Each names its field.
        Vec<String>,
    ),
}

/// The longest timeout of a handler, in seconds.
const LONGEST_TIMEOUT: i64 = 30;

/// The timeout of a handler that names none, in seconds.
const DEFAULT_TIMEOUT: i64 = 10;

/// The most handlers that the status of an ExtensionConfig holds.
const MOST_HANDLERS: usize = 512;

/// How much of what a server says is repeated, in characters.
const LONGEST_MESSAGE: usize = 512;

/// How many problems are told of one answer.
const MOST_PROBLEMS: usize = 20;

/// What a server is asked.
pub fn request() -> Value {
    json!({ "kind": "DiscoveryRequest", "apiVersion": format!("{GROUP}/{VERSION}") })
}

/// Where a server is asked, behind the path of its ExtensionConfig.
pub fn path() -> String {
    Discovery::reference().path()
}

/// Reads the body of an answer by the hooks of `catalog`. The handlers are sorted by name: servers written in Go give them in an
/// order that differs each time.
///
/// # Errors
///
/// When the server did not succeed, or anything is wrong with one of the handlers.
pub fn read_answer(body: &[u8], catalog: &Catalog) -> Result<Discovered, DiscoveryError> {
    let answer = first_value(body).map_err(|error| DiscoveryError::NotJson(error.to_string()))?;
    let Value::Object(answer) = &answer else {
        return Err(DiscoveryError::NotJson("it must be an object".into()));
    };
    let said = |name| field(answer, name).and_then(Value::as_str).unwrap_or_default();
    let message = || tidied(said("message"));
    match said("status") {
        "Success" => {}
        "Failure" => return Err(DiscoveryError::Failure(message())),
        status => {
            return Err(DiscoveryError::UnknownStatus {
                status: tidied(status),
                message: message(),
            });
        }
    }
    let mut problems = Vec::new();
    let mut handlers = match field(answer, "handlers") {
        None => Vec::new(),
        Some(Value::Array(items)) if items.len() > MOST_HANDLERS => {
            problems.push(format!(
                "handlers: {} of them, {MOST_HANDLERS} at most",
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
        problems.push(format!("{place}.name: {:?} must be a DNS label", tidied(&name)));
    }
    let hook = HookReference {
        api_version: string(request_hook, "apiVersion", &place, problems),
        hook: string(request_hook, "hook", &place, problems),
    };
    if let Some(problem) = problem_of(&hook) {
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

/// What is wrong with a hook that a handler is said to answer.
fn problem_of(hook: &HookReference) -> Option<String> {
    if !hook.has_group_and_version() {
        let api_version = tidied(&hook.api_version);
        return Some(format!(
            "apiVersion {api_version:?} must have the form <group>/<version>"
        ));
    }
    (!hook.has_name()).then(|| format!("hook {:?} must be the name of a hook", tidied(&hook.hook)))
}

/// The text of a field; where it is none, that is a problem.
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

/// The beginning of what somebody else wrote, on one line.
fn tidied(text: &str) -> String {
    text::tidied(text).chars().take(LONGEST_MESSAGE).collect()
}

// === impl Handler ===

impl Handler {
    /// The handler as the status of the ExtensionConfig `config` names it. There a name is that of one server among all.
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

// === impl FailurePolicy ===

impl FailurePolicy {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}
