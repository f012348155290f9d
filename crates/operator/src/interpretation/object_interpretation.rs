//! Interprets objects of bundles.

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
    cached_webhooks::CachedWebhooks,
    rules::{InterpretationNews, InterpretationRules},
    wait_budget::WaitBudgets,
};
use crate::install::status::Ailment;

/// Interprets objects of bundles.
pub(crate) struct Interpretation {
    pub(super) index: Arc<Index>,
    pub(super) customizations: Arc<Customizations>,
    pub(super) webhooks: Arc<CachedWebhooks>,
    pub(super) native: NativeInterpreter,
    pub(super) times: WaitBudgets,
    rules: RwLock<Arc<InterpretationRules>>,
    /// Serializes refreshes.
    refreshing: Mutex<()>,
}

/// Kinds for which the built-in health rules are ignored, since the install has stricter checks: Deployments
/// have their own gate, and an APIService is armed only after its server was proven. A PodDisruptionBudget is
/// often for pods that the operator creates later.
const ONLY_CUSTOMIZED: [Kind; 3] = [
    kinds::DEPLOYMENT,
    kinds::API_SERVICE,
    Kind::new("policy/v1", "PodDisruptionBudget"),
];

/// The time limit of all scripts for the objects of one bundle. Each script may take a second.
const LONGEST: Duration = Duration::from_secs(10);

const TOO_LATE: &str = "scripts for other objects took too long";

impl Interpretation {
    /// Reads the customizations and webhooks in `index`, and calls webhooks through `caller`.
    pub(crate) fn new(index: Arc<Index>, caller: Arc<dyn WebhookCaller>, metrics: Arc<Metrics>) -> Self {
        Self {
            index,
            customizations: Arc::default(),
            webhooks: Arc::new(CachedWebhooks::new(caller, metrics)),
            // The clock is used only when statuses of several clusters are aggregated, which Windlass never
            // does.
            native: NativeInterpreter::new(Timestamp::now),
            times: WaitBudgets::default(),
            rules: RwLock::default(),
            refreshing: Mutex::default(),
        }
    }

    /// Reads changed customizations and webhooks, and returns new problems. `unlisted` are the kinds that
    /// cannot be listed.
    ///
    /// # Errors
    ///
    /// When the thread that reads them panicked.
    pub(crate) async fn refresh(
        self: &Arc<Self>,
        unlisted: Vec<Kind>,
    ) -> Result<Vec<InterpretationNews>, JoinError> {
        let _refreshing = self.refreshing.lock().await;
        let known = self.rules();
        if known.is_current(&self.index, &unlisted) {
            return Ok(Vec::new());
        }
        let this = self.clone();
        // Reading compiles scripts, which blocks.
        tokio::task::spawn_blocking(move || {
            let (rules, news) = known.refreshed(&this.index, unlisted, &this.customizations, &this.webhooks);
            *this.rules.write() = Arc::new(rules);
            news
        })
        .await
    }

    /// Starts a reconciliation of a BundleDeployment with its full time to wait for webhooks.
    pub(crate) fn begin_reconcile(&self, deployment: &str) {
        self.times.begin(deployment);
    }

    /// Forgets a deleted BundleDeployment.
    pub(crate) fn forget(&self, deployment: &str) {
        self.times.forget(deployment);
    }

    /// Returns an interpreter that tries customizations, then webhooks, then built-in rules. It waits for
    /// webhooks until `until`, and does not call those in `skipped`.
    pub(super) fn interpreter(&self, until: Instant, skipped: HashSet<String>) -> ResourceInterpreter {
        let sources: [Arc<dyn InterpreterSource>; 3] = [
            self.customizations.clone(),
            Arc::new(self.webhooks.for_reconcile(until, skipped)),
            Arc::new(self.native.clone()),
        ];
        ResourceInterpreter::new(sources.into())
    }

    pub(super) fn rules(&self) -> Arc<InterpretationRules> {
        self.rules.read().clone()
    }

    /// Reports whether there are any customizations or webhooks.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules().is_empty()
    }

    /// Returns the kinds of customizations and webhooks that could not be listed.
    pub(crate) fn unlisted(&self) -> Vec<Kind> {
        self.rules().unlisted().to_vec()
    }

    /// Reports whether a customization interprets an operation for an object.
    pub(crate) fn is_customized(&self, operation: Operation, object: &Value) -> bool {
        !self.customizations.interpreters(operation, object).is_empty()
    }

    /// Reports whether a webhook interprets an operation for an object if no customization does.
    pub(crate) fn has_webhook(&self, operation: Operation, object: &Value) -> bool {
        !self.webhooks.interpreters_for(operation, object).is_empty()
    }

    /// Reports whether a customization or a webhook interprets an operation for an object.
    pub(crate) fn has_rule(&self, operation: Operation, object: &Value) -> bool {
        self.is_customized(operation, object) || self.has_webhook(operation, object)
    }

    /// Reports whether the health of an object is interpreted.
    pub(crate) fn interprets_health(&self, object: &Value) -> bool {
        let kind = Kind::named(
            object::text(object, "/apiVersion").unwrap_or_default().to_owned(),
            object::text(object, "/kind").unwrap_or_default().to_owned(),
        );
        let health = Operation::InterpretHealth;
        let is_native = || !self.native.interpreters(health, object).is_empty();
        self.has_rule(health, object) || (!ONLY_CUSTOMIZED.contains(&kind) && is_native())
    }

    /// Returns why the health of an object is unknown: a customization that may select it cannot be used.
    pub(crate) fn unusable_reason(&self, object: &Value) -> Option<String> {
        let rules = self.rules();
        let unusable = rules.unusable_for(Operation::InterpretHealth, object)?;
        Some(unusable.message.clone())
    }

    /// Returns the objects of a BundleDeployment that are unhealthy or of unknown health, in order.
    ///
    /// # Errors
    ///
    /// When the thread that runs scripts panicked.
    pub(crate) async fn health_problems(
        self: &Arc<Self>,
        deployment: &str,
        objects: Vec<(ObjectKey, Arc<Value>)>,
    ) -> Result<Vec<Ailment>, JoinError> {
        let this = self.clone();
        let interpret = move |interpreter: ResourceInterpreter, (key, object): (ObjectKey, Arc<Value>)| {
            let this = this.clone();
            async move { this.health_problem(&interpreter, key, &object).await }
        };
        let too_late = |(key, _)| Some(Ailment::unknown(key, TOO_LATE));
        let found = self
            .interpret_each(
                deployment,
                Operation::InterpretHealth,
                objects,
                |(_, object)| object,
                interpret,
                too_late,
            )
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn health_problem(
        &self,
        interpreter: &ResourceInterpreter,
        key: ObjectKey,
        object: &Value,
    ) -> Option<Ailment> {
        match interpreter.health(object).await {
            (ObjectHealth::Healthy, _) => None,
            (ObjectHealth::Unhealthy, _) => {
                let rule = self.first_rule(Operation::InterpretHealth, object);
                Some(Ailment::of(key, object, rule.as_deref()))
            }
            (ObjectHealth::Unknown, error) => {
                let why = error.map(|error| chain(&error)).unwrap_or_default();
                Some(Ailment::unknown(key, &why))
            }
        }
    }

    /// Returns the name of the customization or webhook with the highest precedence.
    pub(super) fn first_rule(&self, operation: Operation, object: &Value) -> Option<String> {
        let customizations = self.customizations.interpreters(operation, object);
        let customized = customizations.first().map(|interpreter| interpreter.name());
        let webhook = || Some(self.webhooks.interpreters_for(operation, object).first()?.name());
        customized.or_else(webhook)
    }

    /// Returns what each object of a BundleDeployment depends on, in order; an error where that is unknown.
    ///
    /// # Errors
    ///
    /// When the thread that runs scripts panicked.
    pub(crate) async fn dependencies(
        self: &Arc<Self>,
        deployment: &str,
        objects: Vec<Value>,
    ) -> Result<Vec<Result<Vec<DependentObjectReference>, String>>, JoinError> {
        let interpret = |interpreter: ResourceInterpreter, object: Value| async move {
            let found = interpreter.dependencies(&object).await;
            found.map_err(|error| chain(&error))
        };
        let operation = Operation::InterpretDependency;
        self.interpret_each(
            deployment,
            operation,
            objects,
            |object| object,
            interpret,
            |_| Err(TOO_LATE.to_owned()),
        )
        .await
    }

    /// Calls `interpret` for each item, and returns the answers in order. Items with scripts run one after the
    /// other on a blocking thread, all others concurrently.
    async fn interpret_each<T, A, F>(
        &self,
        deployment: &str,
        operation: Operation,
        items: Vec<T>,
        object: impl Fn(&T) -> &Value,
        interpret: impl Fn(ResourceInterpreter, T) -> F + Clone + Send + 'static,
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
            let future = interpret(interpreter.clone(), item);
            async move { (place, future.await) }
        });
        let others = join_all(others);
        let others = async move {
            let _wait = wait;
            others.await
        };
        let scripted = run_in_sequence(interpreter.clone(), scripted, interpret.clone(), too_late);
        let (scripted, others) = tokio::join!(scripted, others);
        let mut found: Vec<(usize, A)> = scripted?.into_iter().chain(others).collect();
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// Calls `interpret` for one item after the other on a blocking thread, until the time limit.
async fn run_in_sequence<T, A, F>(
    interpreter: ResourceInterpreter,
    items: Vec<(usize, T)>,
    interpret: impl Fn(ResourceInterpreter, T) -> F + Send + 'static,
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
    run_blocking(async move {
        let begun = Instant::now();
        let mut answers = Vec::with_capacity(items.len());
        for (place, item) in items {
            let answer = match begun.elapsed() < LONGEST {
                true => interpret(interpreter.clone(), item).await,
                false => too_late(item),
            };
            answers.push((place, answer));
        }
        answers
    })
    .await
}

/// Runs a future on a blocking thread: a script takes up to a second, and does not yield.
pub(super) async fn run_blocking<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(future)).await
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

    async fn health_problems(interpretation: &Arc<Interpretation>, object: Value) -> Vec<(bool, String)> {
        let key = ObjectKey::from_object(&object).unwrap();
        let ailments = interpretation
            .health_problems("a", vec![(key, Arc::new(object))])
            .await;
        let ailments = ailments.unwrap().into_iter();
        ailments.map(|ailment| (ailment.is_known, ailment.why)).collect()
    }

    #[tokio::test]
    async fn customizations_of_the_cluster_are_used_while_they_exist() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::without_webhooks(index.clone()));
        let widget = |phase: &str| object("Widget", json!({"phase": phase}));
        assert!(
            !interpretation.interprets_health(&widget("Down")),
            "no rule is known"
        );
        assert_eq!(health_problems(&interpretation, widget("Down")).await, []);
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        let rule = healthy("return observedObj.status.phase == 'Up'");
        index.apply(&watch, customization("widgets", "Widget", rule));
        assert!(
            !interpretation.interprets_health(&widget("Down")),
            "the customization was not read yet"
        );
        assert!(interpretation.refresh(Vec::new()).await.unwrap().is_empty());
        assert!(interpretation.interprets_health(&widget("Down")));
        assert_eq!(
            health_problems(&interpretation, widget("Down")).await,
            [(
                true,
                "status.phase is Down (ResourceInterpreterCustomization widgets)".to_owned()
            )]
        );
        assert_eq!(health_problems(&interpretation, widget("Up")).await, []);
        let key = kinds::RESOURCE_INTERPRETER_CUSTOMIZATION.object(None, "widgets");
        index.delete(&watch, &key);
        interpretation.refresh(Vec::new()).await.unwrap();
        assert!(!interpretation.interprets_health(&widget("Down")));
    }

    #[tokio::test]
    async fn a_script_that_fails_names_its_customization() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::without_webhooks(index.clone()));
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        index.apply(
            &watch,
            customization("broken", "Widget", healthy("error('not today')")),
        );
        interpretation.refresh(Vec::new()).await.unwrap();
        let found = health_problems(&interpretation, object("Widget", json!({}))).await;
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
    async fn built_in_health_rules_are_ignored_where_the_install_is_stricter() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::without_webhooks(index));
        for (api_version, kind, expected) in [
            ("v1", "Service", true),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", true),
            ("apps/v1", "Deployment", false),
            ("apiregistration.k8s.io/v1", "APIService", false),
            ("policy/v1", "PodDisruptionBudget", false),
            ("v1", "ConfigMap", false),
        ] {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            assert_eq!(interpretation.interprets_health(&object), expected, "{kind}");
        }
    }

    #[tokio::test]
    async fn scripts_interpret_dependencies() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::without_webhooks(index.clone()));
        let script = "function GetDependencies(desiredObj)\n  return {{apiVersion = 'v1', kind = 'Secret', namespace = 'n', name = desiredObj.status.secret}}\nend";
        let rule = json!({"dependencyInterpretation": {"luaScript": script}});
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        index.apply(&watch, customization("widgets", "Widget", rule));
        interpretation.refresh(Vec::new()).await.unwrap();
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
