//! Asks about objects of bundles.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::future::join_all;
use interpreter::{
    Interpreter, InterpreterSource, NativeInterpreter, ObjectHealth, Operation, ResourceInterpreter,
    answer::DependentObjectReference, customization::Customizations, webhook::WebhookCaller,
};
use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::{runtime::Handle, sync::Mutex, task::JoinError, time::Instant};
use windlass_cluster::{
    Index, Kind, kinds,
    telemetry::{Metrics, chain},
};
use windlass_object::{ObjectKey, object};

use super::{
    asked_webhooks::AskedWebhooks,
    learned::{InterpretationNews, Learned},
    look_times::LookTimes,
};
use crate::install::status::Ailment;

/// What is said of objects of bundles.
pub(crate) struct Interpretation {
    pub(super) index: Arc<Index>,
    pub(super) customizations: Arc<Customizations>,
    pub(super) webhooks: Arc<AskedWebhooks>,
    pub(super) native: NativeInterpreter,
    pub(super) times: LookTimes,
    learned: RwLock<Arc<Learned>>,
    /// Is had by whoever reads.
    learning: Mutex<()>,
}

/// The kinds of which only customizations and webhooks are asked whether objects are healthy. What is natively known of them is that
/// of which an install says more: Deployments have a gate of their own, and what serves an APIService is proven before it is armed.
/// Budgets for pods are often for those that the operator will make, and none is there before it is asked for some.
const ONLY_CUSTOMIZED: [Kind; 3] = [
    kinds::DEPLOYMENT,
    kinds::API_SERVICE,
    Kind::new("policy/v1", "PodDisruptionBudget"),
];

/// How long the scripts for the objects of one bundle may take. Each has a second.
const LONGEST: Duration = Duration::from_secs(10);

/// What is said of an object for which there was no time.
const TOO_LONG: &str = "scripts for other objects took too long";

// === impl Interpretation ===

impl Interpretation {
    /// Reads the customizations and webhooks that the watches of `index` see, and calls webhooks by `caller`.
    pub(crate) fn new(index: Arc<Index>, caller: Arc<dyn WebhookCaller>, metrics: Arc<Metrics>) -> Self {
        Self {
            index,
            customizations: Arc::default(),
            webhooks: Arc::new(AskedWebhooks::new(caller, metrics)),
            // It stands in what is made of the status of several clusters, which nobody asks for.
            native: NativeInterpreter::new(Timestamp::now),
            times: LookTimes::default(),
            learned: RwLock::default(),
            learning: Mutex::default(),
        }
    }

    /// Reads what has changed of customizations and webhooks, and returns what is to be told of it. Objects of some kinds cannot be
    /// listed.
    ///
    /// # Errors
    ///
    /// When the thread that reads them was lost.
    pub(crate) async fn learn(
        self: &Arc<Self>,
        unlisted: Vec<Kind>,
    ) -> Result<Vec<InterpretationNews>, JoinError> {
        let _learning = self.learning.lock().await;
        let known = self.learned();
        if known.is_current(&self.index, &unlisted) {
            return Ok(Vec::new());
        }
        let this = self.clone();
        // Scripts are compiled.
        tokio::task::spawn_blocking(move || {
            let (learned, news) = known.next(&this.index, unlisted, &this.customizations, &this.webhooks);
            *this.learned.write() = Arc::new(learned);
            news
        })
        .await
    }

    /// A look at a BundleDeployment begins: it has time to wait for webhooks.
    pub(crate) fn begin_look(&self, deployment: &str) {
        self.times.begin(deployment);
    }

    /// Forgets a BundleDeployment that is gone.
    pub(crate) fn forget(&self, deployment: &str) {
        self.times.forget(deployment);
    }

    /// Customizations before webhooks before what is known natively, where webhooks are waited for no longer than `until`; but for
    /// those webhooks that are `spared`.
    pub(super) fn interpreter(&self, until: Instant, spared: HashSet<String>) -> ResourceInterpreter {
        let sources: [Arc<dyn InterpreterSource>; 3] = [
            self.customizations.clone(),
            Arc::new(self.webhooks.look(until, spared)),
            Arc::new(self.native.clone()),
        ];
        ResourceInterpreter::new(sources.into())
    }

    pub(super) fn learned(&self) -> Arc<Learned> {
        self.learned.read().clone()
    }

    /// Whether there is any customization or webhook.
    pub(crate) fn has_rules(&self) -> bool {
        !self.learned().is_empty()
    }

    /// The kinds of which it is not known which customizations or webhooks there are.
    pub(crate) fn unlisted(&self) -> Vec<Kind> {
        self.learned().unlisted().to_vec()
    }

    /// Whether a customization answers an operation for an object.
    pub(crate) fn is_customized(&self, operation: Operation, object: &Value) -> bool {
        !self.customizations.interpreters(operation, object).is_empty()
    }

    /// Whether a webhook would be asked an operation of an object if no customization answered.
    pub(crate) fn asks_webhook(&self, operation: Operation, object: &Value) -> bool {
        !self.webhooks.asked(operation, object).is_empty()
    }

    /// Whether a customization or a webhook answers an operation for an object.
    pub(crate) fn has_rule(&self, operation: Operation, object: &Value) -> bool {
        self.is_customized(operation, object) || self.asks_webhook(operation, object)
    }

    /// Whether it is to be asked if an object is healthy.
    pub(crate) fn judges(&self, object: &Value) -> bool {
        let kind = Kind::named(
            object::text(object, "/apiVersion").unwrap_or_default().to_owned(),
            object::text(object, "/kind").unwrap_or_default().to_owned(),
        );
        let health = Operation::InterpretHealth;
        let is_native = || !self.native.interpreters(health, object).is_empty();
        self.has_rule(health, object) || (!ONLY_CUSTOMIZED.contains(&kind) && is_native())
    }

    /// Why nobody can say whether an object is healthy: what cannot be used may be for it.
    pub(crate) fn why_unknown(&self, object: &Value) -> Option<String> {
        let learned = self.learned();
        let unusable = learned.unusable_for(Operation::InterpretHealth, object)?;
        Some(unusable.message.clone())
    }

    /// Those of some objects of a BundleDeployment that are not healthy, or of which that cannot be said, in their order.
    ///
    /// # Errors
    ///
    /// When the thread that asks was lost.
    pub(crate) async fn ailments(
        self: &Arc<Self>,
        deployment: &str,
        objects: Vec<(ObjectKey, Arc<Value>)>,
    ) -> Result<Vec<Ailment>, JoinError> {
        let this = self.clone();
        let ask = move |interpreter: ResourceInterpreter, (key, object): (ObjectKey, Arc<Value>)| {
            let this = this.clone();
            async move { this.ailment(&interpreter, key, &object).await }
        };
        let too_late = |(key, _)| Some(Ailment::unknown(key, TOO_LONG));
        let found = self
            .each(
                deployment,
                Operation::InterpretHealth,
                objects,
                |(_, object)| object,
                ask,
                too_late,
            )
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn ailment(
        &self,
        interpreter: &ResourceInterpreter,
        key: ObjectKey,
        object: &Value,
    ) -> Option<Ailment> {
        match interpreter.health(object).await {
            (ObjectHealth::Healthy, _) => None,
            (ObjectHealth::Unhealthy, _) => {
                let says = self.first_rule(Operation::InterpretHealth, object);
                Some(Ailment::of(key, object, says.as_deref()))
            }
            (ObjectHealth::Unknown, error) => {
                let why = error.map(|error| chain(&error)).unwrap_or_default();
                Some(Ailment::unknown(key, &why))
            }
        }
    }

    /// The customization that is asked first, or else the webhook.
    pub(super) fn first_rule(&self, operation: Operation, object: &Value) -> Option<String> {
        let customizations = self.customizations.interpreters(operation, object);
        let customized = customizations.first().map(|interpreter| interpreter.name());
        let webhook = || Some(self.webhooks.asked(operation, object).first()?.name());
        customized.or_else(webhook)
    }

    /// What objects of a BundleDeployment depend on, in their order; an error where that cannot be said.
    ///
    /// # Errors
    ///
    /// When the thread that asks was lost.
    pub(crate) async fn dependencies(
        self: &Arc<Self>,
        deployment: &str,
        objects: Vec<Value>,
    ) -> Result<Vec<Result<Vec<DependentObjectReference>, String>>, JoinError> {
        let ask = |interpreter: ResourceInterpreter, object: Value| async move {
            let found = interpreter.dependencies(&object).await;
            found.map_err(|error| chain(&error))
        };
        let operation = Operation::InterpretDependency;
        self.each(
            deployment,
            operation,
            objects,
            |object| object,
            ask,
            |_| Err(TOO_LONG.to_owned()),
        )
        .await
    }

    /// Asks about each item, and returns the answers in their order: where scripts are asked, about one after the other and beside
    /// whoever waits, and else about all at once.
    async fn each<T, A, F>(
        &self,
        deployment: &str,
        operation: Operation,
        items: Vec<T>,
        object: impl Fn(&T) -> &Value,
        ask: impl Fn(ResourceInterpreter, T) -> F + Clone + Send + 'static,
        too_late: fn(T) -> A,
    ) -> Result<Vec<A>, JoinError>
    where
        T: Send + 'static,
        A: Send + 'static,
        F: Future<Output = A> + Send,
    {
        let wait = self.times.wait(deployment);
        let interpreter = self.interpreter(wait.until(), HashSet::new());
        let (scripted, others): (Vec<_>, Vec<_>) = (0..)
            .zip(items)
            .partition(|(_, item)| self.is_customized(operation, object(item)));
        let others = others.into_iter().map(|(place, item)| {
            let asking = ask(interpreter.clone(), item);
            async move { (place, asking.await) }
        });
        let others = join_all(others);
        let others = async move {
            let _wait = wait;
            others.await
        };
        let scripted = by_turns(interpreter.clone(), scripted, ask.clone(), too_late);
        let (scripted, others) = tokio::join!(scripted, others);
        let mut found: Vec<(usize, A)> = scripted?.into_iter().chain(others).collect();
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// Asks about one item after the other where nobody waits, for as long as there is time.
async fn by_turns<T, A, F>(
    interpreter: ResourceInterpreter,
    items: Vec<(usize, T)>,
    ask: impl Fn(ResourceInterpreter, T) -> F + Send + 'static,
    too_late: fn(T) -> A,
) -> Result<Vec<(usize, A)>, JoinError>
where
    T: Send + 'static,
    A: Send + 'static,
    F: Future<Output = A> + Send,
{
    if items.is_empty() {
        return Ok(Vec::new());
    }
    beside(async move {
        let begun = Instant::now();
        let mut answers = Vec::with_capacity(items.len());
        for (place, item) in items {
            let answer = match begun.elapsed() < LONGEST {
                true => ask(interpreter.clone(), item).await,
                false => too_late(item),
            };
            answers.push((place, answer));
        }
        answers
    })
    .await
}

/// Asks where nobody waits: a script takes up to a second, and does not yield.
pub(super) async fn beside<T: Send + 'static>(
    asking: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(asking)).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::watch::Watch;

    use super::*;

    fn customization(name: &str, kind: &str, rules: Value) -> Value {
        json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
            "metadata": {"name": name, "resourceVersion": name},
            "spec": {"target": {"apiVersion": "example.com/v1", "kind": kind}, "customizations": rules},
        })
    }

    fn healthy(script: &str) -> Value {
        let script = format!("function InterpretHealth(observedObj)\n  {script}\nend");
        json!({"healthInterpretation": {"luaScript": script}})
    }

    fn object(kind: &str, status: Value) -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": kind, "metadata": {"namespace": "n", "name": "a"}, "status": status,
        })
    }

    async fn ailments(interpretation: &Arc<Interpretation>, object: Value) -> Vec<(bool, String)> {
        let key = ObjectKey::from_object(&object).unwrap();
        let ailments = interpretation.ailments("a", vec![(key, Arc::new(object))]).await;
        let ailments = ailments.unwrap().into_iter();
        ailments.map(|ailment| (ailment.is_known, ailment.why)).collect()
    }

    #[tokio::test]
    async fn customizations_of_the_cluster_are_asked_as_they_come_change_and_go() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::reading(index.clone()));
        let widget = |phase: &str| object("Widget", json!({"phase": phase}));
        assert!(!interpretation.judges(&widget("Down")), "nobody knows it");
        assert_eq!(ailments(&interpretation, widget("Down")).await, []);
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        let rule = healthy("return observedObj.status.phase == 'Up'");
        index.apply(&watch, customization("widgets", "Widget", rule));
        assert!(!interpretation.judges(&widget("Down")), "it was not read");
        assert!(interpretation.learn(Vec::new()).await.unwrap().is_empty());
        assert!(interpretation.judges(&widget("Down")));
        assert_eq!(
            ailments(&interpretation, widget("Down")).await,
            [(
                true,
                "status.phase is Down (ResourceInterpreterCustomization widgets)".to_owned()
            )]
        );
        assert_eq!(ailments(&interpretation, widget("Up")).await, []);
        let key = kinds::RESOURCE_INTERPRETER_CUSTOMIZATION.object(None, "widgets");
        index.delete(&watch, &key);
        interpretation.learn(Vec::new()).await.unwrap();
        assert!(!interpretation.judges(&widget("Down")));
    }

    #[tokio::test]
    async fn a_script_that_fails_names_its_customization() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::reading(index.clone()));
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        index.apply(
            &watch,
            customization("broken", "Widget", healthy("error('not today')")),
        );
        interpretation.learn(Vec::new()).await.unwrap();
        let found = ailments(&interpretation, object("Widget", json!({}))).await;
        let (is_known, why) = &found[0];
        assert!(!is_known);
        for words in [
            "ResourceInterpreterCustomization broken",
            "InterpretHealth",
            "not today",
        ] {
            assert!(why.contains(words), "{why}");
        }
    }

    #[tokio::test]
    async fn what_an_install_knows_better_only_customizations_are_asked() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::reading(index));
        for (api_version, kind, expected) in [
            ("v1", "Service", true),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", true),
            ("apps/v1", "Deployment", false),
            ("apiregistration.k8s.io/v1", "APIService", false),
            ("policy/v1", "PodDisruptionBudget", false),
            ("v1", "ConfigMap", false),
        ] {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            assert_eq!(interpretation.judges(&object), expected, "{kind}");
        }
    }

    #[tokio::test]
    async fn dependencies_are_asked_of_scripts() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::reading(index.clone()));
        let script = "function GetDependencies(desiredObj)\n  return {{apiVersion = 'v1', kind = 'Secret', namespace = 'n', name = desiredObj.status.secret}}\nend";
        let rule = json!({"dependencyInterpretation": {"luaScript": script}});
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        index.apply(&watch, customization("widgets", "Widget", rule));
        interpretation.learn(Vec::new()).await.unwrap();
        let objects = vec![
            object("Widget", json!({"secret": "s"})),
            object("Widget", json!({"secret": {}})),
        ];
        let found = interpretation.dependencies("a", objects).await.unwrap();
        let first = found[0].as_ref().unwrap();
        assert_eq!(first[0].name.as_deref(), Some("s"));
        assert!(found[1].is_err());
    }
}
