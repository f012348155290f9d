//! The common parts of responses: status, message and retry time.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Whether a handler succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ResponseStatus {
    /// The handler succeeded.
    #[default]
    Success,
    /// The handler reports a failure.
    Failure,
    /// Another value or none, which is an error.
    Unknown(String),
}

/// The outcome of one handler, or of several combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookOutcome {
    /// Whether the handler succeeded.
    #[serde(default = "ResponseStatus::unset")]
    pub status: ResponseStatus,
    /// A message for users.
    pub message: String,
    /// The number of seconds until the hook is called again; the operation is blocked until then. 0 does not
    /// block.
    pub retry_after_seconds: i32,
}

impl ResponseStatus {
    /// The status of a response without one.
    pub fn unset() -> Self {
        Self::Unknown(String::new())
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Success => "Success",
            Self::Failure => "Failure",
            Self::Unknown(status) => status,
        }
    }
}

impl From<String> for ResponseStatus {
    fn from(status: String) -> Self {
        match &*status {
            "Success" => Self::Success,
            "Failure" => Self::Failure,
            _ => Self::Unknown(status),
        }
    }
}

impl From<ResponseStatus> for String {
    fn from(status: ResponseStatus) -> Self {
        match status {
            ResponseStatus::Unknown(status) => status,
            status => status.as_str().to_owned(),
        }
    }
}

impl fmt::Display for ResponseStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl JsonSchema for ResponseStatus {
    fn schema_name() -> Cow<'static, str> {
        "ResponseStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["Failure", "Success"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl HookOutcome {
    /// Creates a failure with a message.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            status: ResponseStatus::Failure,
            message: message.into(),
            retry_after_seconds: 0,
        }
    }

    /// Combines the outcomes of handlers that all succeeded: the soonest retry and all messages
    /// (`aggregateSuccessfulResponses` of `internal/runtime/client/client.go`).
    pub fn combine(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut messages = Vec::new();
        let mut retries = BTreeSet::new();
        for outcome in outcomes {
            // 0 or less means no retry.
            if outcome.retry_after_seconds > 0 {
                retries.insert(outcome.retry_after_seconds);
            }
            if !outcome.message.is_empty() {
                messages.push(outcome.message);
            }
        }
        Self {
            status: ResponseStatus::Success,
            message: messages.join(", "),
            retry_after_seconds: retries.first().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_retry_and_all_messages_are_combined() {
        let outcome = |message: &str, retry_after_seconds| HookOutcome {
            message: message.into(),
            retry_after_seconds,
            ..HookOutcome::default()
        };
        let all = [(0, "test1"), (1, ""), (5, "test2"), (-4, ""), (3, "")];
        let all = all.map(|(seconds, message)| outcome(message, seconds));
        assert_eq!(HookOutcome::combine(all), outcome("test1, test2", 1));
        assert_eq!(HookOutcome::combine([]), HookOutcome::default());
    }

    #[test]
    fn an_unknown_status_is_kept() {
        for (text, status) in [
            ("\"Success\"", ResponseStatus::Success),
            ("\"Failure\"", ResponseStatus::Failure),
            ("\"success\"", ResponseStatus::Unknown("success".into())),
        ] {
            assert_eq!(serde_json::from_str::<ResponseStatus>(text).unwrap(), status);
            assert_eq!(serde_json::to_string(&status).unwrap(), text);
        }
    }
}
