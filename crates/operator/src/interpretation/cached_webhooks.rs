//! Calls of interpreter webhooks by reconciliations of BundleDeployments: once for each change, with limited
//! concurrency and waiting time.
//!
//! ```text
//! question -> cached? -> call in progress? -> a permit of the webhook -> call in its own task -> cached
//! ```
//!
//! A reconciliation must not block for long, and is repeated. So a call continues in its own task: if the
//! reconciliation gives up waiting, the next one finds the answer in the cache.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use interpreter::{
    Answer, Interpreter, InterpreterSource, Operation, Question,
    interpreter::{AnswerFuture, InterpreterFailure},
    webhook::{WebhookCaller, WebhookConfigurationState, WebhookError, WebhookInterpreter, Webhooks},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout_at},
};
use windlass_cluster::telemetry::{Metrics, chain};

use super::webhook_cache::{WebhookCache, WebhookFailure, WebhookQuestion};

/// All webhooks of a cluster, with their cached answers.
pub(super) struct CachedWebhooks {
    webhooks: Webhooks,
    metrics: Arc<Metrics>,
    cache: WebhookCache,
    /// Calls in progress; each receiver closes when its call ends.
    running_calls: Mutex<HashMap<WebhookQuestion, watch::Receiver<()>>>,
    slots: Mutex<HashMap<String, Arc<WebhookSlot>>>,
}

/// The state of one webhook.
struct WebhookSlot {
    permits: Arc<Semaphore>,
    /// Whether the last wait for the webhook timed out. Until its next answer, reconciliations do not wait
    /// for it.
    is_silent: AtomicBool,
}

/// The webhooks for one reconciliation.
pub(super) struct ReconcileWebhooks {
    webhooks: Arc<CachedWebhooks>,
    /// The latest time to wait for answers.
    until: Instant,
    /// The uids of webhooks that are not called.
    skipped: HashSet<String>,
}

/// Calls one webhook for one reconciliation.
struct WebhookLookup {
    webhooks: Arc<CachedWebhooks>,
    webhook: WebhookInterpreter,
    until: Instant,
}

/// A call in progress. It leaves the list of calls when it is dropped.
struct RunningCall {
    webhooks: Arc<CachedWebhooks>,
    question_key: WebhookQuestion,
    begun: Instant,
    _ended: watch::Sender<()>,
    _permit: OwnedSemaphorePermit,
}

/// The maximum of concurrent calls of one webhook.
const PERMITS: usize = 8;

/// A failed call that took longer than this marks its webhook as silent.
const SILENT: Duration = Duration::from_millis(500);

const STILL_WAITING: &str = "waiting for its answer";

impl CachedWebhooks {
    /// Creates an empty cache; `caller` will call the webhooks.
    pub(super) fn new(caller: Arc<dyn WebhookCaller>, metrics: Arc<Metrics>) -> Self {
        Self {
            webhooks: Webhooks::new(caller),
            metrics,
            cache: WebhookCache::default(),
            running_calls: Mutex::default(),
            slots: Mutex::default(),
        }
    }

    /// Replaces all webhooks, and resets which of them are silent.
    pub(super) fn replace(&self, configurations: &[Value]) -> Vec<WebhookConfigurationState> {
        let states = self.webhooks.replace(configurations);
        self.slots.lock().clear();
        states
    }

    /// Removes the metrics of a deleted configuration.
    pub(super) fn forget(&self, configuration: &str) {
        self.metrics.forget_interpreter(configuration);
    }

    /// Returns the webhooks that interpret an operation for an object, by precedence.
    pub(super) fn interpreters_for(&self, operation: Operation, object: &Value) -> Vec<WebhookInterpreter> {
        self.webhooks.matching(operation, object).unwrap_or_default()
    }

    /// Returns the webhooks for a reconciliation that waits until `until`, except those in `skipped`.
    pub(super) fn for_reconcile(
        self: &Arc<Self>,
        until: Instant,
        skipped: HashSet<String>,
    ) -> ReconcileWebhooks {
        ReconcileWebhooks {
            webhooks: self.clone(),
            until,
            skipped,
        }
    }

    fn slot(&self, webhook: &WebhookInterpreter) -> Arc<WebhookSlot> {
        let mut slots = self.slots.lock();
        slots.entry(webhook.uid().to_owned()).or_default().clone()
    }

    /// Starts a call in its own task, unless one is in progress or answered.
    fn call(
        self: Arc<Self>,
        webhook: &WebhookInterpreter,
        question_key: WebhookQuestion,
        question: Question<'_>,
        permit: OwnedSemaphorePermit,
    ) {
        let (ended, running) = watch::channel(());
        {
            let mut running_calls = self.running_calls.lock();
            // Another reconciliation may have started or finished a call just before.
            if running_calls.contains_key(&question_key)
                || self
                    .cache
                    .find(&question_key, webhook.full_revision(), Instant::now())
                    .is_some()
            {
                return;
            }
            running_calls.insert(question_key.clone(), running);
        }
        let call = RunningCall {
            webhooks: self,
            question_key,
            begun: Instant::now(),
            _ended: ended,
            _permit: permit,
        };
        let operation = question.operation();
        let object = question.object().clone();
        let observed = match question {
            Question::Retain { observed, .. } => observed.clone(),
            _ => Value::Null,
        };
        let webhook = webhook.clone();
        tokio::spawn(async move {
            let question = Question::new(operation, &object, &observed, 0, None);
            call.record(&webhook, webhook.interpret(question).await);
        });
    }
}

impl Default for WebhookSlot {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(PERMITS)),
            is_silent: AtomicBool::new(false),
        }
    }
}

impl RunningCall {
    fn record(&self, webhook: &WebhookInterpreter, answer: Result<Answer, InterpreterFailure>) {
        let CachedWebhooks { cache, metrics, .. } = &*self.webhooks;
        let failure = answer
            .as_ref()
            .err()
            .and_then(|failure| failure.downcast_ref::<WebhookError>());
        if !failure.is_some_and(is_before_call) {
            metrics.record_interpretation(webhook.configuration(), answer.is_ok());
        }
        let slot = self.webhooks.slot(webhook);
        match answer {
            Ok(answer) => {
                slot.is_silent.store(false, Ordering::Relaxed);
                cache.insert_answer(self.question_key.clone(), webhook.full_revision(), answer);
            }
            Err(failure) => {
                let is_call_failure = matches!(failure.downcast_ref(), Some(WebhookError::Call(_)));
                let is_silent = is_call_failure && self.begun.elapsed() > SILENT;
                slot.is_silent.store(is_silent, Ordering::Relaxed);
                let failure = WebhookFailure::new(
                    chain(&*failure),
                    webhook.can_be_skipped(&failure),
                    is_call_failure,
                );
                cache.insert_failure(
                    &self.question_key,
                    webhook.full_revision(),
                    failure,
                    Instant::now(),
                );
            }
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.webhooks.running_calls.lock().remove(&self.question_key);
    }
}

impl InterpreterSource for ReconcileWebhooks {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let matching = self.webhooks.interpreters_for(operation, object).into_iter();
        let lookups = matching.filter(|webhook| !self.skipped.contains(webhook.uid()));
        let lookups = lookups.map(|webhook| -> Arc<dyn Interpreter> {
            Arc::new(WebhookLookup {
                webhooks: self.webhooks.clone(),
                webhook,
                until: self.until,
            })
        });
        lookups.collect()
    }
}

impl WebhookLookup {
    async fn look_up(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        // An object without a name has no cached answer.
        let Some(question_key) = WebhookQuestion::new(&self.webhook, question) else {
            return self.webhook.interpret(question).await;
        };
        let slot = self.webhooks.slot(&self.webhook);
        loop {
            let (cache, reading) = (&self.webhooks.cache, self.webhook.full_revision());
            if let Some(known) = cache.find(&question_key, reading, Instant::now()) {
                return Ok(Answer::clone(&*known?));
            }
            let until = match slot.is_silent.load(Ordering::Relaxed) {
                true => Instant::now(),
                false => self.until,
            };
            let running = self.webhooks.running_calls.lock().get(&question_key).cloned();
            let Some(mut running) = running else {
                let permit = timeout_at(until, slot.permits.clone().acquire_owned()).await;
                // All permits are in use, or a new state was created when the webhooks changed.
                let Ok(Ok(permit)) = permit else {
                    return Err(still_waiting());
                };
                self.webhooks
                    .clone()
                    .call(&self.webhook, question_key.clone(), question, permit);
                continue;
            };
            // The channel closes when the call ends.
            if timeout_at(until, running.changed()).await.is_err() {
                slot.is_silent.store(true, Ordering::Relaxed);
                return Err(still_waiting());
            }
        }
    }
}

impl Interpreter for WebhookLookup {
    fn name(&self) -> String {
        self.webhook.name()
    }

    fn can_be_skipped(&self, failure: &InterpreterFailure) -> bool {
        let failure = failure.downcast_ref::<WebhookFailure>();
        failure.is_some_and(|failure| failure.may_be_skipped)
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(self.look_up(question))
    }
}

/// Reports whether the webhook was not even called.
fn is_before_call(failure: &WebhookError) -> bool {
    match failure {
        WebhookError::NotListed | WebhookError::Configuration(_) | WebhookError::Request(_) => true,
        WebhookError::Call(_) | WebhookError::Answer(_) => false,
    }
}

fn still_waiting() -> InterpreterFailure {
    WebhookFailure::new(STILL_WAITING.to_owned(), false, true).into()
}
