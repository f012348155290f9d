//! The cache of webhook answers: no webhook is called twice while neither the object nor the rules change.

use std::{sync::Arc, time::Duration};

use interpreter::{Answer, Operation, Question, webhook::WebhookInterpreter};
use moka::{policy::EvictionPolicy, sync::Cache};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::Instant;
use windlass_object::{ObjectKey, object};

/// Cached answers of webhooks, and failures until their next retry.
///
/// # Guarantees
///
/// - Answers use at most [`LARGEST`] bytes, as JSON; the least recently used are evicted.
/// - An error in an answer counts for that state of the object. A failed call counts for all states, so that a server that is down is
///   not called more often because objects change.
pub(super) struct WebhookCache {
    answers: Cache<WebhookQuestion, Arc<Answer>>,
    /// Keyed by the revision of the webhook configuration, including its CA bundle, since the CA may have
    /// caused the failure.
    failures: Cache<(u64, FailureScope), WebhookFailure>,
}

/// A question to one webhook about one state of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WebhookQuestion {
    subject: QuestionSubject,
    /// Hash of the state.
    digest: [u8; 32],
}

/// A question to one webhook about an object in any state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct QuestionSubject {
    webhook: String,
    revision: u64,
    operation: Operation,
    object: ObjectKey,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FailureScope {
    Subject(QuestionSubject),
    Question(WebhookQuestion),
}

/// Why a webhook has not answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub(super) struct WebhookFailure {
    pub(super) message: String,
    /// Whether the next interpreter is tried instead.
    pub(super) may_be_skipped: bool,
    /// Whether the call itself failed, as opposed to the interpretation.
    pub(super) is_call_failure: bool,
    /// The number of failures in a row.
    times: u32,
    /// The time of the next retry.
    again: Option<Instant>,
}

/// The size limit of all answers, as JSON in bytes.
const LARGEST: u64 = 32 << 20;

/// The estimated memory of an answer in addition to its JSON.
const OVERHEAD: usize = 512;

/// The most cached failures.
const FAILURES: u64 = 10_000;

/// How long an unused entry is cached.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause before the first retry; each further pause is twice as long.
const FIRST_RETRY: Duration = Duration::from_secs(2);

/// The longest pause.
const LATEST_RETRY: Duration = Duration::from_secs(60);

impl WebhookCache {
    /// Returns the cached answer or failure; `None` if the webhook must be called now. `reading` is the
    /// revision of the webhook configuration.
    pub(super) fn find(
        &self,
        question_key: &WebhookQuestion,
        reading: u64,
        now: Instant,
    ) -> Option<Result<Arc<Answer>, WebhookFailure>> {
        if let Some(answer) = self.answers.get(question_key) {
            return Some(Ok(answer));
        }
        let scopes = question_key.scopes().into_iter();
        let failures = scopes.filter_map(|scope| self.failures.get(&(reading, scope)));
        let mut current = failures.filter(|failure| failure.again.is_some_and(|again| now < again));
        current.next().map(Err)
    }

    pub(super) fn insert_answer(&self, question_key: WebhookQuestion, reading: u64, answer: Answer) {
        for scope in question_key.scopes() {
            self.failures.invalidate(&(reading, scope));
        }
        self.answers.insert(question_key, Arc::new(answer));
    }

    /// Caches a failure until its next retry.
    pub(super) fn insert_failure(
        &self,
        question_key: &WebhookQuestion,
        reading: u64,
        failure: WebhookFailure,
        now: Instant,
    ) {
        let [subject, question] = question_key.scopes();
        let scope = match failure.is_call_failure {
            true => (reading, subject),
            false => (reading, question),
        };
        let times = self.failures.get(&scope).map_or(0, |known| known.times);
        let delay = FIRST_RETRY.saturating_mul(1 << times.min(16)).min(LATEST_RETRY);
        let failure = WebhookFailure {
            times: times.saturating_add(1),
            again: Some(now + delay),
            ..failure
        };
        self.failures.insert(scope, failure);
    }
}

impl Default for WebhookCache {
    fn default() -> Self {
        let weight =
            |_: &WebhookQuestion, answer: &Arc<Answer>| u32::try_from(size(answer)).unwrap_or(u32::MAX);
        Self {
            answers: Cache::builder()
                .max_capacity(LARGEST)
                .weigher(weight)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_idle(UNUSED)
                .build(),
            failures: Cache::builder()
                .max_capacity(FAILURES)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_idle(UNUSED)
                .build(),
        }
    }
}

fn size(answer: &Answer) -> usize {
    let text = |length: Option<usize>| length.unwrap_or_default();
    let of = match answer {
        Answer::Object(object) => object.to_string().len(),
        Answer::Status(status) => text(status.as_ref().map(|status| status.to_string().len())),
        Answer::Dependency(references) => text(serde_json::to_vec(references).ok().map(|text| text.len())),
        Answer::Component(components) => text(serde_json::to_vec(components).ok().map(|text| text.len())),
        Answer::Replica { .. } | Answer::Health(_) => 0,
    };
    of + OVERHEAD
}

impl WebhookQuestion {
    /// Returns the question to `webhook`; `None` for objects without a name, and for operations that no
    /// install uses.
    pub(super) fn new(webhook: &WebhookInterpreter, question: Question<'_>) -> Option<Self> {
        let mut hash = Sha256::new();
        match question {
            Question::Retain { desired, observed } => {
                hash.update(desired.to_string());
                hash.update(state(observed));
            }
            // A desired object has no resourceVersion.
            Question::Health { object } | Question::Dependency { object } => hash.update(state(object)),
            _ => return None,
        }
        let subject = QuestionSubject {
            webhook: webhook.uid().to_owned(),
            revision: webhook.revision(),
            operation: question.operation(),
            object: ObjectKey::from_object(question.object())?,
        };
        Some(Self {
            subject,
            digest: hash.finalize().into(),
        })
    }

    fn scopes(&self) -> [FailureScope; 2] {
        [
            FailureScope::Subject(self.subject.clone()),
            FailureScope::Question(self.clone()),
        ]
    }
}

/// Identifies a state of an object, by uid and resourceVersion if it has them.
fn state(object: &Value) -> String {
    let uid = object::text(object, "/metadata/uid");
    let version = object::text(object, "/metadata/resourceVersion");
    match (uid, version) {
        (Some(uid), Some(version)) => format!("{uid} {version}"),
        _ => object.to_string(),
    }
}

impl WebhookFailure {
    /// Creates a first failure.
    pub(super) fn new(message: String, may_be_skipped: bool, is_call_failure: bool) -> Self {
        Self {
            message,
            may_be_skipped,
            is_call_failure,
            times: 0,
            again: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(name: &str, operation: Operation) -> WebhookQuestion {
        let object = json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": name}});
        let subject = QuestionSubject {
            webhook: "c/w".to_owned(),
            revision: 0,
            operation,
            object: ObjectKey::from_object(&object).unwrap(),
        };
        WebhookQuestion {
            subject,
            digest: [0; 32],
        }
    }

    #[tokio::test]
    async fn the_size_is_limited_and_unused_answers_expire() {
        let (memory, now) = (WebhookCache::default(), Instant::now());
        let large = json!({"data": "x".repeat(1 << 20)});
        let often = question("often", Operation::InterpretHealth);
        memory.insert_answer(often.clone(), 0, Answer::Health(true));
        for number in 0..100 {
            let retain = question(&number.to_string(), Operation::Retain);
            memory.insert_answer(retain.clone(), 0, Answer::Object(large.clone()));
            assert!(
                memory.find(&retain, 0, now).is_some(),
                "the answer is cached first"
            );
            assert!(memory.find(&often, 0, now).is_some());
            memory.answers.run_pending_tasks();
        }
        assert!(memory.answers.weighted_size() <= LARGEST);
        let is_known = |name: &str| memory.find(&question(name, Operation::Retain), 0, now).is_some();
        assert!(is_known("99") && !is_known("0"));
    }

    #[tokio::test]
    async fn failures_are_cached_by_call_or_by_question() {
        let (memory, now) = (WebhookCache::default(), Instant::now());
        let one = question("a", Operation::Retain);
        let other = WebhookQuestion {
            digest: [1; 32],
            ..one.clone()
        };
        for (is_call_failure, expected) in [(false, false), (true, true)] {
            let failure = WebhookFailure::new("no".to_owned(), false, is_call_failure);
            memory.insert_failure(&one, 0, failure, now);
            assert!(memory.find(&one, 0, now).is_some());
            assert_eq!(memory.find(&other, 0, now).is_some(), expected);
            assert!(
                memory.find(&one, 0, now + FIRST_RETRY).is_none(),
                "the webhook is called again"
            );
        }
        memory.insert_answer(one.clone(), 0, Answer::Health(true));
        assert!(matches!(memory.find(&one, 0, now), Some(Ok(_))));
        assert!(memory.find(&other, 0, now).is_none());
    }
}
