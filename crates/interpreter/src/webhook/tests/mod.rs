//! Karmada's behaviour with webhooks, case by case.

mod admission;
mod answers;
mod patches;
mod selection;
mod shadowing;
mod wire;

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use webhook_transport::ServerReference;

use super::*;
use crate::{InterpreterSource, ResourceInterpreter};

/// A fake of all webhooks, which records its calls.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<(String, Value, Duration)>>,
    /// Fields of the response by the path of the webhook; calls of other paths fail.
    says: Vec<(&'static str, Value)>,
    ignored: Mutex<Vec<String>>,
}

impl Fake {
    fn new(says: Vec<(&'static str, Value)>) -> Arc<Self> {
        Arc::new(Self {
            says,
            ..Self::default()
        })
    }

    fn called_paths(&self) -> Vec<String> {
        self.asked.lock().iter().map(|(path, ..)| path.clone()).collect()
    }
}

impl WebhookCaller for Fake {
    fn uid(&self) -> String {
        "u1".to_owned()
    }

    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> CallFuture<'a> {
        let request = serde_json::from_slice(&body).unwrap();
        self.asked
            .lock()
            .push((server.prefix().to_owned(), request, timeout));
        let said = self.says.iter().find(|(path, _)| *path == server.prefix());
        Box::pin(std::future::ready(match said {
            Some((_, said)) => Ok(Bytes::from(response(said.clone()).to_string())),
            None => Err(WebhookCallError {
                source: "connection refused".into(),
                is_ignorable: true,
            }),
        }))
    }

    fn on_ignored(&self, webhook: &str, failure: &(dyn std::error::Error + 'static)) {
        self.ignored.lock().push(format!("{webhook}: {failure}"));
    }
}

/// A response to the request `u1` with some fields.
fn response(fields: Value) -> Value {
    let mut response = json!({"uid": "u1", "successful": true});
    for (name, value) in fields.as_object().unwrap() {
        response[name] = value.clone();
    }
    json!({"response": response})
}

fn configuration(name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": webhooks,
    })
}

/// A webhook at `/<path>` with one rule.
fn webhook(name: &str, path: &str, operations: &[&str], [group, version, kind]: [&str; 3]) -> Value {
    json!({
        "name": name,
        "clientConfig": {"url": format!("https://hooks.example.com/{path}")},
        "rules": [{"operations": operations, "apiGroups": [group], "apiVersions": [version], "kinds": [kind]}],
        "interpreterContextVersions": ["v1alpha1"],
    })
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A certificate in PEM.
fn certificate() -> String {
    let key = KeyPair::generate().unwrap();
    CertificateParams::default().self_signed(&key).unwrap().pem()
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"},
        "spec": {"replicas": 2},
    })
}

/// A resource interpreter with only webhooks.
fn interpreter_of(webhooks: Webhooks) -> ResourceInterpreter {
    let source: Arc<dyn InterpreterSource> = Arc::new(webhooks);
    ResourceInterpreter::new(vec![source])
}
