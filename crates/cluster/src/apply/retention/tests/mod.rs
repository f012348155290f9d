//! Retained values over several upgrades, with an API server that records owners.

mod api_server;
mod model;
mod upgrades;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::BoxError;

use self::api_server::ApiServer;
use super::{Retention, RetentionFuture};
use crate::{
    Index,
    apply::{Applier, Outcome, tests::field_owner},
};

type Rule = fn(&Value, &Value) -> Result<Option<Value>, BoxError>;

/// A rule that may change, and the number of its calls.
#[derive(Default)]
struct Rules {
    rule: Mutex<Option<Rule>>,
    asked: Mutex<usize>,
}

impl Retention for Rules {
    fn answered_by(&self, _: &Value) -> Option<String> {
        self.rule.lock().map(|_| "rule r".to_owned())
    }

    fn retain<'a>(&'a self, desired: &'a Value, observed: &'a Value) -> RetentionFuture<'a> {
        *self.asked.lock() += 1;
        let rule = *self.rule.lock();
        Box::pin(async move { rule.map_or(Ok(None), |rule| rule(desired, observed)) })
    }
}

/// An install of one object.
struct Install {
    server: ApiServer,
    rules: Arc<Rules>,
    applier: Applier,
}

impl Install {
    fn new(rule: Rule) -> Self {
        let (server, rules) = (ApiServer::default(), Arc::new(Rules::default()));
        *rules.rule.lock() = Some(rule);
        let applier = Applier::new(server.cluster(), Arc::new(Index::new())).retaining(rules.clone());
        Self {
            server,
            rules,
            applier,
        }
    }

    fn restart(&mut self) {
        let applier = Applier::new(self.server.cluster(), Arc::new(Index::new()));
        self.applier = applier.retaining(self.rules.clone());
    }

    /// Returns the outcome for `desired`, and the number of applies.
    async fn ensure(&self, desired: &Value) -> (Outcome, usize) {
        let outcome = self.applier.ensure(desired, &field_owner()).await.unwrap();
        (outcome, self.server.applies())
    }

    fn live(&self) -> Value {
        self.server.stored.lock().shown()
    }

    fn owns(&self, names: &[&str]) -> bool {
        let stored = self.server.stored.lock();
        stored.owns(windlass_object::names::INSTALL, names)
    }
}

/// The object in a version of the bundle. The replicas of Deployments are left to their scaler without any
/// rule.
fn workload(kind: &str, version: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"namespace": "n", "name": "w"},
        "spec": {"replicas": 1, "template": {"spec": {
            "containers": [{"name": "main", "image": version, "cpu": "1000m", "args": ["a"]}],
        }}},
    })
}

/// Copies the value at a JSON pointer, if it exists.
fn keep(desired: &Value, observed: &Value, pointer: &str) -> Result<Option<Value>, BoxError> {
    let mut kept = desired.clone();
    if let Some(value) = observed.pointer(pointer) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        kept.pointer_mut(parent).ok_or("no parent")?[name] = value.clone();
    }
    Ok(Some(kept))
}

fn keep_replicas(desired: &Value, observed: &Value) -> Result<Option<Value>, BoxError> {
    keep(desired, observed, "/spec/replicas")
}

/// Adds the containers that are not desired.
fn keep_sidecars(desired: &Value, observed: &Value) -> Result<Option<Value>, BoxError> {
    let containers = "/spec/template/spec/containers";
    let mut kept = desired.clone();
    let own = kept
        .pointer_mut(containers)
        .and_then(Value::as_array_mut)
        .ok_or("none")?;
    for container in observed
        .pointer(containers)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if !own.iter().any(|own| own["name"] == container["name"]) {
            own.push(container.clone());
        }
    }
    Ok(Some(kept))
}
