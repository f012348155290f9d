//! Scripted webhooks without a network, and interpretations that call them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use interpreter::webhook::{CallFuture, WebhookCallError, WebhookCaller};
use parking_lot::Mutex;
use serde_json::{Value, json};
use webhook_transport::ServerReference;
use windlass_cluster::{Index, kinds, watch::Watch};

use super::object_interpretation::Interpretation;

/// The behaviour of a called webhook.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedAnswer {
    /// Answers with these fields, after a delay.
    At(Duration, Value),
    /// Answers that it failed.
    Failed,
    /// Refuses the connection.
    Nothing,
    /// Does not answer until the timeout.
    Silence,
}

/// Answers in place of webhooks, and records the calls.
pub(crate) struct ScriptedWebhooks {
    answer: Mutex<ScriptedAnswer>,
    calls: Mutex<Vec<(String, Value)>>,
    running: Mutex<(usize, usize)>,
}

const UID: &str = "u";

impl ScriptedAnswer {
    pub(crate) fn now(fields: Value) -> Self {
        Self::At(Duration::ZERO, fields)
    }
}

impl ScriptedWebhooks {
    pub(crate) fn new(answer: ScriptedAnswer) -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(answer),
            calls: Mutex::default(),
            running: Mutex::default(),
        })
    }

    pub(crate) fn set_answer(&self, answer: ScriptedAnswer) {
        *self.answer.lock() = answer;
    }

    /// Returns the calls since the last time, as path, operation and object.
    pub(crate) fn take_calls(&self) -> Vec<String> {
        let calls = std::mem::take(&mut *self.calls.lock()).into_iter();
        calls
            .map(|(path, request)| {
                let text = |pointer: &str| {
                    request
                        .pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                };
                format!("{path} {} {}", text("/request/operation"), text("/request/name"))
            })
            .collect()
    }

    /// Returns the highest number of concurrent calls.
    pub(crate) fn max_concurrent_calls(&self) -> usize {
        self.running.lock().1
    }
}

impl WebhookCaller for ScriptedWebhooks {
    fn uid(&self) -> String {
        UID.to_owned()
    }

    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> CallFuture<'a> {
        Box::pin(async move {
            let request = serde_json::from_slice(&body).unwrap();
            self.calls.lock().push((server.prefix().to_owned(), request));
            let answer = self.answer.lock().clone();
            {
                let mut running = self.running.lock();
                running.0 += 1;
                running.1 = running.1.max(running.0);
            }
            let failed = |words: &str| WebhookCallError {
                source: words.to_owned().into(),
                is_ignorable: true,
            };
            let response = match answer {
                ScriptedAnswer::At(delay, mut fields) => {
                    tokio::time::sleep(delay).await;
                    fields["uid"] = UID.into();
                    fields["successful"] = true.into();
                    Ok(Bytes::from(json!({ "response": fields }).to_string()))
                }
                ScriptedAnswer::Failed => {
                    let status = json!({"code": 500, "message": "not today"});
                    let response = json!({"uid": UID, "successful": false, "status": status});
                    Ok(Bytes::from(json!({ "response": response }).to_string()))
                }
                ScriptedAnswer::Nothing => Err(failed("connection refused")),
                ScriptedAnswer::Silence => {
                    tokio::time::sleep(timeout).await;
                    Err(failed("no answer"))
                }
            };
            self.running.lock().0 -= 1;
            response
        })
    }
}

impl Interpretation {
    /// An interpretation whose webhooks all refuse connections.
    pub(crate) fn without_webhooks(index: Arc<Index>) -> Self {
        Self::new(
            index,
            ScriptedWebhooks::new(ScriptedAnswer::Nothing),
            Arc::default(),
        )
    }
}

/// A ResourceInterpreterWebhookConfiguration with one webhook, at `/<name>`, for all operations of a kind.
pub(crate) fn configuration(name: &str, version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": name, "resourceVersion": version},
        "webhooks": [{
            "name": "w.example.com",
            "clientConfig": {"service": {"namespace": "served", "name": name, "path": format!("/{name}")}},
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": [kind]}],
            "interpreterContextVersions": ["v1alpha1"],
        }],
    })
}

pub(crate) fn store_object(index: &Index, object: Value) {
    let kind = match object["kind"].as_str() {
        Some("ResourceInterpreterWebhookConfiguration") => kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION,
        Some("ResourceInterpretation") => kinds::RESOURCE_INTERPRETATION,
        Some("Service") => kinds::SERVICE,
        _ => kinds::BUNDLE_DEPLOYMENT,
    };
    index.apply(&Watch::all(kind), object);
}
