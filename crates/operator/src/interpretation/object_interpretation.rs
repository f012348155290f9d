//! Asks about objects of bundles.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use interpreter::{
    InterpreterSource, NativeInterpreter, ObjectHealth, Operation, ResourceInterpreter,
    answer::DependentObjectReference, customization::Customizations,
};
use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::{runtime::Handle, sync::Mutex, task::JoinError};
use windlass_cluster::{Index, Kind, kinds, telemetry::chain};
use windlass_object::{ObjectKey, object};

use super::learned::{Learned, NewsOfCustomization};
use crate::install::status::Ailment;

/// What is said of objects of bundles.
pub(crate) struct Interpretation {
    pub(super) index: Arc<Index>,
    pub(super) customizations: Arc<Customizations>,
    pub(super) native: NativeInterpreter,
    pub(super) interpreter: ResourceInterpreter,
    learned: RwLock<Arc<Learned>>,
    /// Is had by whoever reads.
    learning: Mutex<()>,
}

/// The kinds of which only customizations are asked whether objects are healthy. What is natively known of them is that of which
/// an install says more: Deployments have a gate of their own, and what serves an APIService is proven before it is armed. Budgets
/// for pods are often for those that the operator will make, and none is there before it is asked for some.
const ONLY_CUSTOMIZED: [Kind; 3] = [
    kinds::DEPLOYMENT,
    kinds::API_SERVICE,
    Kind::new("policy/v1", "PodDisruptionBudget"),
];

/// How long the scripts for the objects of one bundle may take. Each has a second.
const LONGEST: Duration = Duration::from_secs(10);

// === impl Interpretation ===

impl Interpretation {
    /// Reads the customizations that the watches of `index` see.
    pub(crate) fn new(index: Arc<Index>) -> Self {
        let customizations = Arc::<Customizations>::default();
        // It stands in what is made of the status of several clusters, which nobody asks for.
        let native = NativeInterpreter::new(Timestamp::now);
        let sources: Vec<Arc<dyn InterpreterSource>> = vec![customizations.clone(), Arc::new(native.clone())];
        Self {
            index,
            customizations,
            native,
            interpreter: ResourceInterpreter::new(sources),
            learned: RwLock::default(),
            learning: Mutex::default(),
        }
    }

    /// Reads what has changed of customizations, and returns what is to be told of it. Those of some kinds cannot be listed.
    ///
    /// # Errors
    ///
    /// When the thread that reads them was lost.
    pub(crate) async fn learn(
        self: &Arc<Self>,
        unlisted: Vec<Kind>,
    ) -> Result<Vec<NewsOfCustomization>, JoinError> {
        let _learning = self.learning.lock().await;
        let known = self.learned();
        if known.is_current(&self.index, &unlisted) {
            return Ok(Vec::new());
        }
        let this = self.clone();
        // Scripts are compiled.
        tokio::task::spawn_blocking(move || {
            let (learned, news) = known.next(&this.index, unlisted, &this.customizations);
            *this.learned.write() = Arc::new(learned);
            news
        })
        .await
    }

    pub(super) fn learned(&self) -> Arc<Learned> {
        self.learned.read().clone()
    }

    /// Whether there is any customization.
    pub(crate) fn has_customizations(&self) -> bool {
        !self.learned().is_empty()
    }

    /// The kinds of which it is not known which customizations there are.
    pub(crate) fn unlisted(&self) -> Vec<Kind> {
        self.learned().unlisted().to_vec()
    }

    /// Whether a customization answers an operation for an object.
    pub(crate) fn is_customized(&self, operation: Operation, object: &Value) -> bool {
        !self.customizations.interpreters(operation, object).is_empty()
    }

    /// Whether it is to be asked if an object is healthy.
    pub(crate) fn judges(&self, object: &Value) -> bool {
        let kind = Kind::named(
            object::text(object, "/apiVersion").unwrap_or_default().to_owned(),
            object::text(object, "/kind").unwrap_or_default().to_owned(),
        );
        let health = Operation::InterpretHealth;
        let is_native = || !self.native.interpreters(health, object).is_empty();
        self.is_customized(health, object) || (!ONLY_CUSTOMIZED.contains(&kind) && is_native())
    }

    /// Why nobody can say whether an object is healthy: what cannot be used may be for it.
    pub(crate) fn why_unknown(&self, object: &Value) -> Option<String> {
        let learned = self.learned();
        let unusable = learned.unusable_for(Operation::InterpretHealth, object)?;
        Some(unusable.message.clone())
    }

    /// Those of some objects that are not healthy, or of which that cannot be said.
    ///
    /// # Errors
    ///
    /// When the thread that asks was lost.
    pub(crate) async fn ailments(
        self: &Arc<Self>,
        objects: Vec<(ObjectKey, Arc<Value>)>,
    ) -> Result<Vec<Ailment>, JoinError> {
        let health = Operation::InterpretHealth;
        let mut are_customized = objects.iter().map(|(_, object)| object);
        let has_scripts = are_customized.any(|object| self.is_customized(health, object));
        let this = self.clone();
        let asking = async move {
            let begun = Instant::now();
            let mut ailments = Vec::new();
            for (key, object) in objects {
                ailments.extend(match begun.elapsed() < LONGEST {
                    true => this.ailment(key, &object).await,
                    false => Some(Ailment::unknown(key, "scripts for other objects took too long")),
                });
            }
            ailments
        };
        match has_scripts {
            true => beside(asking).await,
            false => Ok(asking.await),
        }
    }

    async fn ailment(&self, key: ObjectKey, object: &Value) -> Option<Ailment> {
        match self.interpreter.health(object).await {
            (ObjectHealth::Healthy, _) => None,
            (ObjectHealth::Unhealthy, _) => {
                let asked = self
                    .customizations
                    .interpreters(Operation::InterpretHealth, object);
                let says = asked.first().map(|interpreter| interpreter.name());
                Some(Ailment::of(key, object, says.as_deref()))
            }
            (ObjectHealth::Unknown, error) => {
                let why = error.map(|error| chain(&error)).unwrap_or_default();
                Some(Ailment::unknown(key, &why))
            }
        }
    }

    /// What objects depend on, in their order; an error where that cannot be said.
    ///
    /// # Errors
    ///
    /// When the thread that asks was lost.
    pub(crate) async fn dependencies(
        self: &Arc<Self>,
        objects: Vec<Value>,
    ) -> Result<Vec<Result<Vec<DependentObjectReference>, String>>, JoinError> {
        let this = self.clone();
        beside(async move {
            let begun = Instant::now();
            let mut found = Vec::new();
            for object in &objects {
                found.push(match begun.elapsed() < LONGEST {
                    true => {
                        let dependencies = this.interpreter.dependencies(object).await;
                        dependencies.map_err(|error| chain(&error))
                    }
                    false => Err("scripts for other objects took too long".to_owned()),
                });
            }
            found
        })
        .await
    }
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
        let key = ObjectKey::of(&object).unwrap();
        let ailments = interpretation.ailments(vec![(key, Arc::new(object))]).await;
        let ailments = ailments.unwrap().into_iter();
        ailments.map(|ailment| (ailment.is_known, ailment.why)).collect()
    }

    #[tokio::test]
    async fn customizations_of_the_cluster_are_asked_as_they_come_change_and_go() {
        let index = Arc::new(Index::new());
        let interpretation = Arc::new(Interpretation::new(index.clone()));
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
        let interpretation = Arc::new(Interpretation::new(index.clone()));
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
        let interpretation = Arc::new(Interpretation::new(index));
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
        let interpretation = Arc::new(Interpretation::new(index.clone()));
        let script = "function GetDependencies(desiredObj)\n  return {{apiVersion = 'v1', kind = 'Secret', namespace = 'n', name = desiredObj.status.secret}}\nend";
        let rule = json!({"dependencyInterpretation": {"luaScript": script}});
        let watch = Watch::all(kinds::RESOURCE_INTERPRETER_CUSTOMIZATION);
        index.apply(&watch, customization("widgets", "Widget", rule));
        interpretation.learn(Vec::new()).await.unwrap();
        let objects = vec![
            object("Widget", json!({"secret": "s"})),
            object("Widget", json!({"secret": {}})),
        ];
        let found = interpretation.dependencies(objects).await.unwrap();
        let first = found[0].as_ref().unwrap();
        assert_eq!(first[0].name.as_deref(), Some("s"));
        assert!(found[1].is_err());
    }
}
