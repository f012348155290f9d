//! When webhooks are called, and with which questions.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use interpreter::Operation;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};
use windlass_cluster::{Index, apply::Retention, kinds, telemetry::chain, watch::Watch};
use windlass_object::{ObjectKey, names};

use super::{
    Interpretation,
    scripted_webhooks::{ScriptedAnswer, ScriptedWebhooks, configuration, store_object},
};

struct Bed {
    index: Arc<Index>,
    webhooks: Arc<ScriptedWebhooks>,
    interpretation: Arc<Interpretation>,
}

fn widget(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"namespace": "n", "name": name, "uid": name, "resourceVersion": version,
            "labels": {names::BUNDLE_DEPLOYMENT: "a"}},
    })
}

fn healthy() -> ScriptedAnswer {
    ScriptedAnswer::now(json!({"healthy": true}))
}

impl Bed {
    /// A test bed with one webhook for Widgets, at `/hook`.
    async fn new(answer: ScriptedAnswer) -> Self {
        let (index, webhooks) = (Arc::new(Index::new()), ScriptedWebhooks::new(answer));
        let interpretation = Interpretation::new(index.clone(), webhooks.clone(), Arc::default());
        let bed = Self {
            index,
            webhooks,
            interpretation: Arc::new(interpretation),
        };
        bed.configure(configuration("hook", "1", "Widget")).await;
        bed
    }

    async fn configure(&self, object: Value) {
        store_object(&self.index, object);
        self.interpretation.refresh(Vec::new()).await.unwrap();
    }

    /// Returns the problems that a reconciliation finds in these objects.
    async fn problems_of(&self, deployment: &str, objects: &[Value]) -> Vec<(bool, String)> {
        self.interpretation.begin_reconcile(deployment);
        let asked = objects
            .iter()
            .map(|object| (ObjectKey::from_object(object).unwrap(), Arc::new(object.clone())));
        let ailments = self.interpretation.health_problems(deployment, asked.collect());
        let ailments = ailments.await.unwrap().into_iter();
        ailments.map(|ailment| (ailment.is_known, ailment.why)).collect()
    }

    async fn problems(&self, objects: &[Value]) -> Vec<(bool, String)> {
        self.problems_of("a", objects).await
    }

    async fn retain(&self, desired: &Value, observed: &Value) -> Result<Option<Value>, String> {
        let kept = self.interpretation.retain(desired, observed).await;
        kept.map_err(|error| chain(&*error))
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_called_once_for_each_change() {
    let bed = Bed::new(healthy()).await;
    assert!(
        bed.interpretation.interprets_health(&widget("w", "1")) && bed.interpretation.has_rules(),
        "the webhook selects the object"
    );
    for _ in 0..3 {
        assert_eq!(bed.problems(&[widget("w", "1")]).await, []);
    }
    assert_eq!(bed.webhooks.take_calls(), ["/hook InterpretHealth w"]);
    bed.webhooks
        .set_answer(ScriptedAnswer::now(json!({"healthy": false})));
    assert_eq!(bed.problems(&[widget("w", "1")]).await, [], "nothing has changed");
    let unhealthy = bed.problems(&[widget("w", "2")]).await;
    let [(true, why)] = &unhealthy[..] else {
        panic!("{unhealthy:?}");
    };
    assert!(
        why.ends_with("(ResourceInterpreterWebhookConfiguration hook, webhook w.example.com)"),
        "{why}"
    );
    bed.problems(&[widget("w", "2")]).await;
    assert_eq!(bed.webhooks.take_calls().len(), 1);
    // A new object with the same name.
    let mut other = widget("w", "2");
    other["metadata"]["uid"] = "other".into();
    bed.problems(&[other]).await;
    assert_eq!(bed.webhooks.take_calls().len(), 1);
    let mut relabelled = configuration("hook", "2", "Widget");
    relabelled["metadata"]["labels"] = json!({"a": "b"});
    bed.configure(relabelled).await;
    bed.problems(&[widget("w", "2")]).await;
    assert_eq!(bed.webhooks.take_calls(), [""; 0], "the webhooks are unchanged");
    let mut changed = configuration("hook", "3", "Widget");
    changed["webhooks"][0]["timeoutSeconds"] = 3.into();
    bed.configure(changed).await;
    bed.webhooks.set_answer(healthy());
    assert_eq!(bed.problems(&[widget("w", "2")]).await, []);
    assert_eq!(bed.webhooks.take_calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn retention_is_requested_once_for_each_change_of_either_object() {
    let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMiLCJ2YWx1ZSI6eyJwYXVzZWQiOnRydWV9fV0=";
    let bed = Bed::new(ScriptedAnswer::now(
        json!({"patch": patch, "patchType": "JSONPatch"}),
    ))
    .await;
    let desired = widget("w", "");
    let by = bed.interpretation.answered_by(&desired);
    assert_eq!(
        by.as_deref(),
        Some("ResourceInterpreterWebhookConfiguration hook, webhook w.example.com")
    );
    for _ in 0..2 {
        let kept = bed.retain(&desired, &widget("w", "1")).await.unwrap().unwrap();
        assert_eq!(kept["spec"]["paused"], true);
    }
    assert_eq!(bed.webhooks.take_calls(), ["/hook Retain w"]);
    bed.retain(&desired, &widget("w", "2")).await.unwrap();
    let mut changed = desired.clone();
    changed["spec"] = json!({"size": 1});
    bed.retain(&changed, &widget("w", "2")).await.unwrap();
    // Reconciliations alternate between the desired and the installed object.
    bed.retain(&desired, &widget("w", "2")).await.unwrap();
    bed.retain(&changed, &widget("w", "2")).await.unwrap();
    assert_eq!(bed.webhooks.take_calls().len(), 2);
    let disabled = json!({
        "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "metadata": {"name": "a"},
        "spec": {"interpretation": "Disabled"},
    });
    store_object(&bed.index, disabled);
    assert_eq!(bed.retain(&desired, &widget("w", "3")).await, Ok(None));
    assert_eq!(bed.webhooks.take_calls(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn equal_questions_share_a_call_and_concurrent_calls_are_limited() {
    let bed = Bed::new(ScriptedAnswer::At(
        Duration::from_millis(200),
        json!({"healthy": true}),
    ))
    .await;
    let widgets: Vec<_> = (0..20).map(|number| widget(&format!("w{number}"), "1")).collect();
    let (one, other) = tokio::join!(bed.problems_of("a", &widgets), bed.problems_of("b", &widgets));
    assert_eq!((one, other), (vec![], vec![]));
    assert_eq!(bed.webhooks.take_calls().len(), 20);
    assert_eq!(bed.webhooks.max_concurrent_calls(), 8);
}

#[tokio::test(start_paused = true)]
async fn only_the_first_call_of_a_silent_webhook_blocks() {
    let bed = Bed::new(healthy()).await;
    bed.configure(configuration("other", "1", "Gadget")).await;
    let mut gadget = widget("g", "1");
    gadget["kind"] = "Gadget".into();
    bed.problems(&[gadget.clone()]).await;
    bed.webhooks.set_answer(ScriptedAnswer::At(
        Duration::from_secs(9),
        json!({"healthy": true}),
    ));
    let widgets = [widget("v", "1"), widget("w", "1")];
    let begun = Instant::now();
    let waiting = bed.problems(&[&widgets[..], &[gadget.clone()]].concat()).await;
    assert_eq!(waiting.len(), 2, "the gadget is not waited for: {waiting:?}");
    assert!(
        waiting
            .iter()
            .all(|(is_known, why)| !is_known && why.ends_with("waiting for its answer")),
        "{waiting:?}"
    );
    let first = begun.elapsed();
    assert!(first <= Duration::from_secs(5), "{first:?}");
    let begun = Instant::now();
    let strange = [widget("x", "1")];
    let (one, other) = tokio::join!(bed.problems_of("a", &widgets), bed.problems_of("b", &strange));
    assert_eq!((one.len(), other.len()), (2, 1));
    assert!(
        begun.elapsed() < Duration::from_millis(50),
        "the webhook is known to be silent"
    );
    sleep(Duration::from_secs(9)).await;
    assert_eq!(bed.problems(&widgets).await, [], "the webhook has answered since");
    // After an answer, reconciliations wait for this webhook again.
    bed.webhooks.set_answer(ScriptedAnswer::At(
        Duration::from_secs(1),
        json!({"healthy": true}),
    ));
    assert_eq!(bed.problems(&[widget("v", "2")]).await, []);
}

#[tokio::test(start_paused = true)]
async fn the_total_wait_of_a_reconciliation_is_limited() {
    let bed = Bed::new(ScriptedAnswer::Silence).await;
    bed.interpretation.begin_reconcile("a");
    let begun = Instant::now();
    for name in ["u", "v", "w", "x"] {
        let object = widget(name, "1");
        let said = bed.retain(&object, &object).await.unwrap_err();
        assert!(said.contains("waiting for its answer"), "{said}");
    }
    let took = begun.elapsed();
    assert!(took <= Duration::from_secs(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_retries_of_a_failing_webhook_back_off() {
    let bed = Bed::new(ScriptedAnswer::Nothing).await;
    let mut calls = 0;
    for second in 0..600 {
        // Changes of the object do not matter.
        let found = bed.problems(&[widget("w", &second.to_string())]).await;
        assert!(found[0].1.ends_with("connection refused"), "{found:?}");
        calls += bed.webhooks.take_calls().len();
        advance(Duration::from_secs(1)).await;
    }
    // After 2, 4, 8, 16 and 32 seconds, and then every 60.
    assert!((13..=16).contains(&calls), "{calls}");
    bed.webhooks.set_answer(healthy());
    advance(Duration::from_secs(60)).await;
    assert_eq!(bed.problems(&[widget("w", "x")]).await, []);
    assert_eq!(bed.webhooks.take_calls().len(), 1);
    bed.webhooks.set_answer(ScriptedAnswer::Nothing);
    bed.problems(&[widget("w", "y")]).await;
    advance(Duration::from_secs(3)).await;
    bed.problems(&[widget("w", "y")]).await;
    assert_eq!(bed.webhooks.take_calls().len(), 2, "the pauses start over");
}

#[tokio::test(start_paused = true)]
async fn a_new_ca_bundle_keeps_answers_and_drops_failures() {
    let bed = Bed::new(healthy()).await;
    let trusting = |version: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let mut trusting = configuration("hook", version, "Widget");
        trusting["webhooks"][0]["clientConfig"]["caBundle"] = STANDARD.encode(certificate.pem()).into();
        trusting
    };
    assert_eq!(bed.problems(&[widget("w", "1")]).await, []);
    bed.configure(trusting("2")).await;
    bed.webhooks.set_answer(ScriptedAnswer::Nothing);
    assert_eq!(bed.problems(&[widget("w", "1")]).await, []);
    assert_eq!(bed.problems(&[widget("w", "2")]).await.len(), 1);
    bed.webhooks.set_answer(healthy());
    assert_eq!(bed.problems(&[widget("w", "2")]).await.len(), 1);
    assert_eq!(bed.webhooks.take_calls().len(), 2);
    bed.configure(trusting("3")).await;
    assert_eq!(bed.problems(&[widget("w", "2")]).await, []);
    assert_eq!(bed.webhooks.take_calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_an_answer_counts_until_the_object_changes() {
    let bed = Bed::new(ScriptedAnswer::Failed).await;
    let found = bed.problems(&[widget("w", "1")]).await;
    assert!(found[0].1.contains("not today"), "{found:?}");
    bed.problems(&[widget("w", "1")]).await;
    assert_eq!(bed.webhooks.take_calls().len(), 1);
    bed.webhooks.set_answer(healthy());
    assert_eq!(
        bed.problems(&[widget("w", "2")]).await,
        [],
        "the object was corrected"
    );
    let mut changed = configuration("hook", "2", "Widget");
    changed["webhooks"][0]["timeoutSeconds"] = 3.into();
    bed.configure(changed).await;
    assert_eq!(
        bed.problems(&[widget("w", "1")]).await,
        [],
        "the webhook was corrected"
    );
}

#[tokio::test(start_paused = true)]
async fn customizations_precede_webhooks_and_built_in_rules() {
    let bed = Bed::new(ScriptedAnswer::now(json!({"healthy": false}))).await;
    let service = |version: &str| {
        let metadata = json!({"namespace": "n", "name": "s", "uid": "u", "resourceVersion": version});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    };
    assert_eq!(bed.problems(&[service("1")]).await, [], "the built-in rule");
    bed.configure(configuration("services", "1", "Service")).await;
    assert_eq!(bed.problems(&[service("1")]).await.len(), 1);
    bed.webhooks.set_answer(ScriptedAnswer::Nothing);
    let unknown = bed.problems(&[service("2")]).await;
    assert!(!unknown[0].0, "{unknown:?}");
    let mut lenient = configuration("services", "2", "Service");
    lenient["webhooks"][0]["failurePolicy"] = "Ignore".into();
    bed.configure(lenient).await;
    bed.webhooks.take_calls();
    for _ in 0..2 {
        assert_eq!(
            bed.problems(&[service("2")]).await,
            [],
            "the built-in rule follows"
        );
    }
    assert_eq!(bed.webhooks.take_calls().len(), 1, "the failure is cached");
    let customization = |version: &str, script: &str| {
        let script = format!("function InterpretHealth(observedObj)\n  {script}\nend");
        json!({
            "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
            "metadata": {"name": "services", "resourceVersion": version},
            "spec": {
                "targets": [{"apiVersion": "v1", "kind": "Service"}],
                "customizations": {"healthInterpretation": {"luaScript": script}},
            },
        })
    };
    bed.configure(customization("1", "return false")).await;
    let found = bed.problems(&[service("3")]).await;
    assert!(
        found[0].1.ends_with("(ResourceInterpretation services)"),
        "{found:?}"
    );
    bed.configure(customization("2", "error('no script')")).await;
    let found = bed.problems(&[service("4")]).await;
    assert!(found[0].1.contains("no script"), "{found:?}");
    assert_eq!(
        bed.webhooks.take_calls(),
        [""; 0],
        "later interpreters are not called"
    );
}

#[tokio::test(start_paused = true)]
async fn webhooks_interpret_dependencies() {
    let needs = json!([{"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "s"}]);
    let bed = Bed::new(ScriptedAnswer::now(json!({ "dependencies": needs }))).await;
    let objects = vec![widget("v", ""), widget("w", "")];
    for _ in 0..2 {
        let found = bed.interpretation.dependencies("a", objects.clone());
        let found = found.await.unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|found| found.as_ref().unwrap()[0].name.as_deref())
            .collect();
        assert_eq!(names, [Some("s"), Some("s")]);
    }
    assert_eq!(bed.webhooks.take_calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn retention_is_unknown_while_webhooks_cannot_be_listed() {
    let bed = Bed::new(healthy()).await;
    let unlisted = vec![kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION];
    bed.interpretation.refresh(unlisted.clone()).await.unwrap();
    assert_eq!(bed.interpretation.unlisted(), unlisted);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}});
    assert!(bed.interpretation.answered_by(&service).is_some());
    let error = bed.retain(&service, &service).await.unwrap_err();
    assert!(error.contains("cannot be listed"), "{error}");
    assert!(!bed.interpretation.can_stay_unchanged("a", &widget("w", "1")));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_the_bundle_itself_does_not_block_its_upgrade() {
    let bed = Bed::new(ScriptedAnswer::Nothing).await;
    bed.configure(configuration("any", "1", "*")).await;
    let labelled = |mut object: Value| {
        object["metadata"]["labels"] = json!({names::BUNDLE_DEPLOYMENT: "a"});
        object
    };
    let deployment = labelled(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"},
    }));
    let scaler = labelled(json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"namespace": "n", "name": "sizes"},
    }));
    let error = bed.retain(&deployment, &deployment).await.unwrap_err();
    assert!(
        error.contains("connection refused"),
        "another bundle serves it: {error}"
    );
    assert!(!bed.interpretation.can_stay_unchanged("a", &scaler));
    let owner = |namespace: &str| {
        json!({
            "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "metadata": {"name": "a"},
            "spec": {"namespace": namespace},
        })
    };
    let service = |owner: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "served", "name": "any", "labels": {names::BUNDLE_DEPLOYMENT: owner}},
        })
    };
    let gone = kinds::SERVICE.object(Some("served"), "any");
    for (namespace, of_service, is_own) in [
        ("elsewhere", Some("a"), true),
        ("served", Some("b"), false),
        ("elsewhere", None, false),
        ("served", None, true),
    ] {
        store_object(&bed.index, owner(namespace));
        match of_service {
            Some(owner) => store_object(&bed.index, service(owner)),
            None => bed.index.delete(&Watch::all(kinds::SERVICE), &gone),
        }
        let kept = bed.retain(&deployment, &deployment).await;
        assert_eq!(kept.is_ok(), is_own, "{namespace} {of_service:?}: {kept:?}");
        assert!(
            bed.retain(&scaler, &scaler).await.is_err(),
            "the webhook is called"
        );
        assert_eq!(bed.interpretation.can_stay_unchanged("a", &scaler), is_own);
        let health = bed.problems(std::slice::from_ref(&deployment)).await;
        assert!(!health[0].0, "{health:?}");
    }
    let retain = Operation::Retain;
    assert!(bed.interpretation.has_webhook(retain, &deployment));
}
