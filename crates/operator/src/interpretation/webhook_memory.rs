//! What webhooks have answered: none is asked twice while neither the object nor the rules change.

use std::{sync::Arc, time::Duration};

use interpreter::{Answer, Operation, Question, webhook::WebhookInterpreter};
use moka::{policy::EvictionPolicy, sync::Cache};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::Instant;
use windlass_object::{ObjectKey, object};

/// Answers of webhooks, and their failures for as long as they are not asked again.
///
/// # Guarantees
///
/// - It holds no more than [`LARGEST`] bytes of answers, as JSON; those go first that nobody has needed for longest.
/// - A failure of what was said counts for that state of the object, one of the call for every state: a server that is down is not
///   asked more often because an object changes.
pub(super) struct WebhookMemory {
    answers: Cache<WebhookQuestion, Arc<Answer>>,
    /// By which reading of the webhook's configuration failed, and at what: whom it trusts may be what is wrong.
    failures: Cache<(u64, FailureScope), WebhookFailure>,
}

/// What one webhook is asked about one state of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WebhookQuestion {
    subject: QuestionSubject,
    /// Of the state.
    digest: [u8; 32],
}

/// What one webhook is asked about an object, whatever that is like.
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
    /// Whether whoever counts next is asked instead.
    pub(super) gives_way: bool,
    /// Whether the call failed, rather than what was said.
    pub(super) is_of_call: bool,
    /// How often in a row.
    times: u32,
    /// When it is asked again.
    again: Option<Instant>,
}

/// The most bytes of answers, as JSON.
const LARGEST: u64 = 32 << 20;

/// What an answer takes beside its JSON.
const OVERHEAD: usize = 512;

/// The most failures.
const FAILURES: u64 = 10_000;

/// How long is remembered what nobody needs.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);

/// How soon a webhook is asked again that failed for the first time; then twice as late each time.
const FIRST_RETRY: Duration = Duration::from_secs(2);

/// How late at the most.
const LATEST_RETRY: Duration = Duration::from_secs(60);

// === impl WebhookMemory ===

impl WebhookMemory {
    /// What is known of a question, unless it is to be asked now, by this reading of the webhook's configuration.
    pub(super) fn find(
        &self,
        asked: &WebhookQuestion,
        reading: u64,
        now: Instant,
    ) -> Option<Result<Arc<Answer>, WebhookFailure>> {
        if let Some(answer) = self.answers.get(asked) {
            return Some(Ok(answer));
        }
        let scopes = asked.scopes().into_iter();
        let failures = scopes.filter_map(|scope| self.failures.get(&(reading, scope)));
        let mut current = failures.filter(|failure| failure.again.is_some_and(|again| now < again));
        current.next().map(Err)
    }

    /// Remembers an answer.
    pub(super) fn answered(&self, asked: WebhookQuestion, reading: u64, answer: Answer) {
        for scope in asked.scopes() {
            self.failures.invalidate(&(reading, scope));
        }
        self.answers.insert(asked, Arc::new(answer));
    }

    /// Remembers a failure, and how long it counts.
    pub(super) fn failed(
        &self,
        asked: &WebhookQuestion,
        reading: u64,
        failure: WebhookFailure,
        now: Instant,
    ) {
        let [subject, question] = asked.scopes();
        let scope = match failure.is_of_call {
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

impl Default for WebhookMemory {
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

// === impl WebhookQuestion ===

impl WebhookQuestion {
    /// What `webhook` is asked; `None` of what has no name, and of what no install asks.
    pub(super) fn of(webhook: &WebhookInterpreter, question: Question<'_>) -> Option<Self> {
        let mut hash = Sha256::new();
        match question {
            Question::Retain { desired, observed } => {
                hash.update(desired.to_string());
                hash.update(state(observed));
            }
            // What is desired has no version.
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

/// Tells a state of an object from all others: by its version where it has one.
fn state(object: &Value) -> String {
    let uid = object::text(object, "/metadata/uid");
    let version = object::text(object, "/metadata/resourceVersion");
    match (uid, version) {
        (Some(uid), Some(version)) => format!("{uid} {version}"),
        _ => object.to_string(),
    }
}

// === impl WebhookFailure ===

impl WebhookFailure {
    /// One that has just come.
    pub(super) fn new(message: String, gives_way: bool, is_of_call: bool) -> Self {
        Self {
            message,
            gives_way,
            is_of_call,
            times: 0,
            again: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(name: &str, operation: Operation) -> WebhookQuestion {
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
    async fn it_holds_so_much_and_forgets_what_nobody_needs() {
        let (memory, now) = (WebhookMemory::default(), Instant::now());
        let large = json!({"data": "x".repeat(1 << 20)});
        let often = asked("often", Operation::InterpretHealth);
        memory.answered(often.clone(), 0, Answer::Health(true));
        for number in 0..100 {
            let retain = asked(&number.to_string(), Operation::Retain);
            memory.answered(retain.clone(), 0, Answer::Object(large.clone()));
            assert!(memory.find(&retain, 0, now).is_some(), "it is remembered first");
            assert!(memory.find(&often, 0, now).is_some());
            memory.answers.run_pending_tasks();
        }
        assert!(memory.answers.weighted_size() <= LARGEST);
        let is_known = |name: &str| memory.find(&asked(name, Operation::Retain), 0, now).is_some();
        assert!(is_known("99") && !is_known("0"));
    }

    #[tokio::test]
    async fn failures_count_for_the_call_or_for_what_was_said() {
        let (memory, now) = (WebhookMemory::default(), Instant::now());
        let one = asked("a", Operation::Retain);
        let other = WebhookQuestion {
            digest: [1; 32],
            ..one.clone()
        };
        for (is_of_call, expected) in [(false, false), (true, true)] {
            let failure = WebhookFailure::new("no".to_owned(), false, is_of_call);
            memory.failed(&one, 0, failure, now);
            assert!(memory.find(&one, 0, now).is_some());
            assert_eq!(memory.find(&other, 0, now).is_some(), expected);
            assert!(
                memory.find(&one, 0, now + FIRST_RETRY).is_none(),
                "it is asked again"
            );
        }
        memory.answered(one.clone(), 0, Answer::Health(true));
        assert!(matches!(memory.find(&one, 0, now), Some(Ok(_))));
        assert!(memory.find(&other, 0, now).is_none());
    }
}
