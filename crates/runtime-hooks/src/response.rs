//! What every response has: whether the handler succeeded, what it says, and when to ask again.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Whether a handler succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ResponseStatus {
    /// It did.
    #[default]
    Success,
    /// It did not, and says so.
    Failure,
    /// It says something else, or nothing, which is an error.
    Unknown(String),
}

/// What every response says, of one handler or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookOutcome {
    /// Whether it succeeded.
    #[serde(default = "ResponseStatus::unset")]
    pub status: ResponseStatus,
    /// What a person is to know.
    pub message: String,
    /// After how many seconds to ask again; what is asked for may not go on before. 0: it may.
    pub retry_after_seconds: i32,
}

// === impl ResponseStatus ===

impl ResponseStatus {
    /// Of a response that does not say.
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

// === impl HookOutcome ===

impl HookOutcome {
    /// It did not succeed, because of what `message` says.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            status: ResponseStatus::Failure,
            message: message.into(),
            retry_after_seconds: 0,
        }
    }

    /// What several handlers say together, which have all succeeded: the soonest time to ask again, and all that they say
    /// (`aggregateSuccessfulResponses` of `internal/runtime/client/client.go`).
    pub fn of_all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut messages = Vec::new();
        let mut retries = BTreeSet::new();
        for outcome in outcomes {
            // A time that is over asks for nothing.
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
    fn the_soonest_retry_and_all_messages_count() {
        let outcome = |message: &str, retry_after_seconds| HookOutcome {
            message: message.into(),
            retry_after_seconds,
            ..HookOutcome::default()
        };
        let all = [(0, "test1"), (1, ""), (5, "test2"), (-4, ""), (3, "")];
        let all = all.map(|(seconds, message)| outcome(message, seconds));
        assert_eq!(HookOutcome::of_all(all), outcome("test1, test2", 1));
        assert_eq!(HookOutcome::of_all([]), HookOutcome::default());
    }

    #[test]
    fn a_status_that_is_not_known_is_kept() {
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
