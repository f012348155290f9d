//! Webhooks, as looks at BundleDeployments ask them: once for each change, several at a time, and none for long.
//!
//! ```text
//! question -> remembered? -> under way? -> a turn of its webhook -> call, beside the look -> remembered
//! ```
//!
//! A look comes again and again, and needs an answer at once or none. So a call goes on by itself: who does not wait long enough for it
//! finds its answer at the next look.

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
    interpreter::{InterpreterFailure, Interpreting},
    webhook::{WebhookCaller, WebhookConfigurationState, WebhookError, WebhookInterpreter, Webhooks},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout_at},
};
use windlass_cluster::telemetry::{Metrics, chain};

use super::webhook_memory::{WebhookFailure, WebhookMemory, WebhookQuestion};

/// All webhooks of a cluster, and what they have answered.
pub(super) struct AskedWebhooks {
    webhooks: Webhooks,
    metrics: Arc<Metrics>,
    memory: WebhookMemory,
    /// What is being asked; each ends when it is.
    under_way: Mutex<HashMap<WebhookQuestion, watch::Receiver<()>>>,
    lines: Mutex<HashMap<String, Arc<WebhookLine>>>,
}

/// Those who ask one webhook.
struct WebhookLine {
    turns: Arc<Semaphore>,
    /// Somebody has waited for it in vain, and it has not answered since: nobody waits for it.
    is_silent: AtomicBool,
}

/// Webhooks for one look.
pub(super) struct WebhookLook {
    webhooks: Arc<AskedWebhooks>,
    /// How long it waits.
    until: Instant,
    /// Those that are not asked, by their uid.
    spared: HashSet<String>,
}

/// Asks one webhook for one look.
struct WebhookLookup {
    webhooks: Arc<AskedWebhooks>,
    webhook: WebhookInterpreter,
    until: Instant,
}

/// Takes a call from those under way, however it ends.
struct CallUnderWay {
    webhooks: Arc<AskedWebhooks>,
    asked: WebhookQuestion,
    begun: Instant,
    _ended: watch::Sender<()>,
    _turn: OwnedSemaphorePermit,
}

/// How many calls of one webhook are under way at a time.
const TURNS: usize = 8;

/// After what time without an answer nobody waits for a webhook until it has given one.
const SILENT: Duration = Duration::from_millis(500);

/// What is said while an answer is awaited.
const AWAITED: &str = "waiting for its answer";

// === impl AskedWebhooks ===

impl AskedWebhooks {
    /// Not known yet; `caller` will call them.
    pub(super) fn new(caller: Arc<dyn WebhookCaller>, metrics: Arc<Metrics>) -> Self {
        Self {
            webhooks: Webhooks::new(caller),
            metrics,
            memory: WebhookMemory::default(),
            under_way: Mutex::default(),
            lines: Mutex::default(),
        }
    }

    /// Takes others in the place of those that were there. Whoever was silent may be another one now.
    pub(super) fn replace(&self, configurations: &[Value]) -> Vec<WebhookConfigurationState> {
        let states = self.webhooks.replace(configurations);
        self.lines.lock().clear();
        states
    }

    /// A configuration is gone.
    pub(super) fn forget(&self, configuration: &str) {
        self.metrics.forget_interpreter(configuration);
    }

    /// Those that are asked an operation of an object, the one that counts most first.
    pub(super) fn asked(&self, operation: Operation, object: &Value) -> Vec<WebhookInterpreter> {
        self.webhooks.asked(operation, object).unwrap_or_default()
    }

    /// The webhooks for a look that waits no longer than `until`, but for those that are `spared`.
    pub(super) fn look(self: &Arc<Self>, until: Instant, spared: HashSet<String>) -> WebhookLook {
        WebhookLook {
            webhooks: self.clone(),
            until,
            spared,
        }
    }

    fn line(&self, webhook: &WebhookInterpreter) -> Arc<WebhookLine> {
        let mut lines = self.lines.lock();
        lines.entry(webhook.uid().to_owned()).or_default().clone()
    }

    /// Calls a webhook beside whoever asks, unless somebody does already.
    fn call(
        self: Arc<Self>,
        webhook: &WebhookInterpreter,
        asked: WebhookQuestion,
        question: Question<'_>,
        turn: OwnedSemaphorePermit,
    ) {
        let (ended, running) = watch::channel(());
        {
            let mut under_way = self.under_way.lock();
            // Somebody else may have had a turn just before.
            if under_way.contains_key(&asked)
                || self
                    .memory
                    .find(&asked, webhook.reading(), Instant::now())
                    .is_some()
            {
                return;
            }
            under_way.insert(asked.clone(), running);
        }
        let call = CallUnderWay {
            webhooks: self,
            asked,
            begun: Instant::now(),
            _ended: ended,
            _turn: turn,
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
            call.take_note(&webhook, webhook.interpret(question).await);
        });
    }
}

// === impl WebhookLine ===

impl Default for WebhookLine {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(TURNS)),
            is_silent: AtomicBool::new(false),
        }
    }
}

// === impl CallUnderWay ===

impl CallUnderWay {
    fn take_note(&self, webhook: &WebhookInterpreter, said: Result<Answer, InterpreterFailure>) {
        let AskedWebhooks { memory, metrics, .. } = &*self.webhooks;
        let failure = said
            .as_ref()
            .err()
            .and_then(|failure| failure.downcast_ref::<WebhookError>());
        if !failure.is_some_and(is_before_any_call) {
            metrics.interpreted(webhook.configuration(), said.is_ok());
        }
        let line = self.webhooks.line(webhook);
        match said {
            Ok(answer) => {
                line.is_silent.store(false, Ordering::Relaxed);
                memory.answered(self.asked.clone(), webhook.reading(), answer);
            }
            Err(failure) => {
                let is_of_call = matches!(failure.downcast_ref(), Some(WebhookError::Call(_)));
                let is_silent = is_of_call && self.begun.elapsed() > SILENT;
                line.is_silent.store(is_silent, Ordering::Relaxed);
                let failure = WebhookFailure::new(chain(&*failure), webhook.gives_way(&failure), is_of_call);
                memory.failed(&self.asked, webhook.reading(), failure, Instant::now());
            }
        }
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        self.webhooks.under_way.lock().remove(&self.asked);
    }
}

// === impl WebhookLook ===

impl InterpreterSource for WebhookLook {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let asked = self.webhooks.asked(operation, object).into_iter();
        let lookups = asked.filter(|webhook| !self.spared.contains(webhook.uid()));
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

// === impl WebhookLookup ===

impl WebhookLookup {
    async fn look_up(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        // What has no name no webhook takes.
        let Some(asked) = WebhookQuestion::of(&self.webhook, question) else {
            return self.webhook.interpret(question).await;
        };
        let line = self.webhooks.line(&self.webhook);
        loop {
            let (memory, reading) = (&self.webhooks.memory, self.webhook.reading());
            if let Some(known) = memory.find(&asked, reading, Instant::now()) {
                return Ok(Answer::clone(&*known?));
            }
            let until = match line.is_silent.load(Ordering::Relaxed) {
                true => Instant::now(),
                false => self.until,
            };
            let running = self.webhooks.under_way.lock().get(&asked).cloned();
            let Some(mut running) = running else {
                let turn = timeout_at(until, line.turns.clone().acquire_owned()).await;
                // None is free, or a new one began when the webhooks changed.
                let Ok(Ok(turn)) = turn else {
                    return Err(awaited());
                };
                self.webhooks
                    .clone()
                    .call(&self.webhook, asked.clone(), question, turn);
                continue;
            };
            // That nobody sends any more is that it ended.
            if timeout_at(until, running.changed()).await.is_err() {
                line.is_silent.store(true, Ordering::Relaxed);
                return Err(awaited());
            }
        }
    }
}

impl Interpreter for WebhookLookup {
    fn name(&self) -> String {
        self.webhook.name()
    }

    fn gives_way(&self, failure: &InterpreterFailure) -> bool {
        let failure = failure.downcast_ref::<WebhookFailure>();
        failure.is_some_and(|failure| failure.gives_way)
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a> {
        Box::pin(self.look_up(question))
    }
}

/// Whether a webhook was not even called.
fn is_before_any_call(failure: &WebhookError) -> bool {
    match failure {
        WebhookError::NotListed | WebhookError::Configuration(_) | WebhookError::Request(_) => true,
        WebhookError::Call(_) | WebhookError::Answer(_) => false,
    }
}

fn awaited() -> InterpreterFailure {
    WebhookFailure::new(AWAITED.to_owned(), false, true).into()
}
