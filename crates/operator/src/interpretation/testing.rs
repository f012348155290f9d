//! Webhooks without a network, and interpretations that ask them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use interpreter::webhook::{Calling, WebhookCallError, WebhookCaller};
use parking_lot::Mutex;
use serde_json::{Value, json};
use webhook_transport::ServerReference;
use windlass_cluster::{Index, kinds, watch::Watch};

use super::object_interpretation::Interpretation;

/// What a webhook does that is called.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// It answers with these fields.
    At(Duration, Value),
    /// It says that it failed.
    Failed,
    /// It cannot be reached.
    Nothing,
    /// It is silent for as long as it may.
    Silence,
}

/// Answers in place of webhooks, and notes who was asked what.
pub(crate) struct ScriptedWebhooks {
    says: Mutex<Says>,
    asked: Mutex<Vec<(String, Value)>>,
    running: Mutex<(usize, usize)>,
}

const UID: &str = "u";

// === impl Says ===

impl Says {
    pub(crate) fn now(fields: Value) -> Self {
        Self::At(Duration::ZERO, fields)
    }
}

// === impl ScriptedWebhooks ===

impl ScriptedWebhooks {
    pub(crate) fn new(says: Says) -> Arc<Self> {
        Arc::new(Self {
            says: Mutex::new(says),
            asked: Mutex::default(),
            running: Mutex::default(),
        })
    }

    pub(crate) fn say(&self, says: Says) {
        *self.says.lock() = says;
    }

    /// Who was asked which operation of which object since this was asked last.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock()).into_iter();
        asked
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

    /// How many calls were under way at a time, at the most.
    pub(crate) fn most_running(&self) -> usize {
        self.running.lock().1
    }
}

impl WebhookCaller for ScriptedWebhooks {
    fn uid(&self) -> String {
        UID.to_owned()
    }

    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> Calling<'a> {
        Box::pin(async move {
            let request = serde_json::from_slice(&body).unwrap();
            self.asked.lock().push((server.prefix().to_owned(), request));
            let says = self.says.lock().clone();
            {
                let mut running = self.running.lock();
                running.0 += 1;
                running.1 = running.1.max(running.0);
            }
            let failed = |words: &str| WebhookCallError {
                source: words.to_owned().into(),
                is_ignorable: true,
            };
            let said = match says {
                Says::At(delay, mut fields) => {
                    tokio::time::sleep(delay).await;
                    fields["uid"] = UID.into();
                    fields["successful"] = true.into();
                    Ok(Bytes::from(json!({ "response": fields }).to_string()))
                }
                Says::Failed => {
                    let status = json!({"code": 500, "message": "not today"});
                    let response = json!({"uid": UID, "successful": false, "status": status});
                    Ok(Bytes::from(json!({ "response": response }).to_string()))
                }
                Says::Nothing => Err(failed("connection refused")),
                Says::Silence => {
                    tokio::time::sleep(timeout).await;
                    Err(failed("no answer"))
                }
            };
            self.running.lock().0 -= 1;
            said
        })
    }
}

// === impl Interpretation ===

impl Interpretation {
    /// One whose webhooks are all down.
    pub(crate) fn reading(index: Arc<Index>) -> Self {
        Self::new(index, ScriptedWebhooks::new(Says::Nothing), Arc::default())
    }
}

/// A ResourceInterpreterWebhookConfiguration of one webhook, at `/<name>`, for all operations of a kind.
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

/// Shows an object of the kinds that rules are of.
pub(crate) fn show(index: &Index, object: Value) {
    let kind = match object["kind"].as_str() {
        Some("ResourceInterpreterWebhookConfiguration") => kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION,
        Some("ResourceInterpretation") => kinds::RESOURCE_INTERPRETATION,
        Some("Service") => kinds::SERVICE,
        _ => kinds::BUNDLE_DEPLOYMENT,
    };
    index.apply(&Watch::all(kind), object);
}
