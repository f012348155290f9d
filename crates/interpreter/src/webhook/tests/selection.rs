//! Selection of webhooks, and failures of calls.

use super::*;
use crate::{NativeInterpreter, ObjectHealth, Operation, customization::Customizations};

fn fitting(rules: Value, operation: Operation, object: &Value) -> usize {
    let mut hook = webhook("a.example.com", "", &["Retain"], ["", "", ""]);
    hook["rules"] = rules;
    let webhooks = Webhooks::new(Fake::new(vec![]));
    webhooks.replace(&[configuration("c", &[hook])]);
    webhooks.interpreters(operation, object).len()
}

#[test]
fn a_rule_matches_operation_group_version_and_kind() {
    let rule = |operations: &[&str], groups: &[&str], versions: &[&str], kinds: &[&str]| json!([{"operations": operations, "apiGroups": groups, "apiVersions": versions, "kinds": kinds}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    for (rules, object, expected) in [
        (
            rule(&["Retain"], &["apps"], &["v1"], &["Deployment"]),
            deployment(),
            1,
        ),
        (rule(&["*"], &["*"], &["*"], &["*"]), deployment(), 1),
        (
            rule(
                &["InterpretHealth", "Retain"],
                &["batch", "apps"],
                &["v1"],
                &["Job", "Deployment"],
            ),
            deployment(),
            1,
        ),
        (
            rule(&["InterpretHealth"], &["apps"], &["v1"], &["Deployment"]),
            deployment(),
            0,
        ),
        (rule(&["Prune"], &["*"], &["*"], &["*"]), deployment(), 0),
        (
            rule(&["Retain"], &[""], &["v1"], &["Deployment"]),
            deployment(),
            0,
        ),
        (
            rule(&["Retain"], &["apps"], &["v1beta1"], &["Deployment"]),
            deployment(),
            0,
        ),
        (
            rule(&["Retain"], &["apps"], &["v1"], &["deployment"]),
            deployment(),
            0,
        ),
        (rule(&["Retain"], &[""], &["v1"], &["Pod"]), pod.clone(), 1),
        (rule(&["Retain"], &["apps"], &["v1"], &["Pod"]), pod, 0),
        (rule(&["*"], &["*"], &["*"], &["*"]), json!({"kind": "Pod"}), 0),
        (json!([]), deployment(), 0),
        (
            json!([
                {"operations": ["Retain"], "apiGroups": ["none"], "apiVersions": ["v1"], "kinds": ["Deployment"]},
                {"operations": ["Retain"], "apiGroups": ["apps"], "apiVersions": ["v1"], "kinds": ["*"]},
            ]),
            deployment(),
            1,
        ),
    ] {
        assert_eq!(
            fitting(rules.clone(), Operation::Retain, &object),
            expected,
            "{rules}"
        );
    }
}

#[test]
fn the_old_name_of_an_operation_is_an_alias() {
    let rules = json!([{"operations": ["InterpretHealthy"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"]}]);
    assert_eq!(fitting(rules, Operation::InterpretHealth, &deployment()), 1);
}

const DEPLOYMENTS: [&str; 3] = ["apps", "v1", "Deployment"];

#[tokio::test]
async fn the_webhook_that_sorts_first_is_called() {
    let fake = Fake::new(vec![
        ("/a-z", json!({"healthy": false})),
        ("/a-y", json!({"healthy": true})),
    ]);
    let webhooks = Webhooks::new(fake.clone());
    let hook = |name: &str, path: &str| webhook(name, path, &["*"], DEPLOYMENTS);
    let states = webhooks.replace(&[
        configuration("b", &[hook("a.example.com", "b-a")]),
        configuration("a", &[hook("z.example.com", "a-z"), hook("y.example.com", "a-y")]),
    ]);
    assert!(states.iter().all(|state| state.usage == WebhookUsage::Used));
    let by = "a/y.example.com".to_owned();
    let told: Vec<_> = states.iter().map(|state| state.shadowed.clone()).collect();
    let shadowed = |webhook: &str| ShadowedWebhook {
        webhook: webhook.to_owned(),
        by: by.clone(),
        operations: Operation::ALL.to_vec(),
    };
    assert_eq!(
        told,
        [vec![shadowed("a.example.com")], vec![shadowed("z.example.com")]]
    );
    assert!(
        told[0][0]
            .to_string()
            .starts_with("webhook a.example.com is not called for InterpretReplica, InterpretComponent, ")
    );
    let interpreter = interpreter_of(webhooks);
    assert_eq!(interpreter.health(&deployment()).await.0, ObjectHealth::Healthy);
    assert_eq!(fake.called_paths(), ["/a-y"]);
    assert_eq!(
        fake.asked.lock()[0].2,
        Duration::from_secs(10),
        "the default timeout"
    );
}

#[test]
fn an_earlier_webhook_shadows_later_ones() {
    let webhooks = Webhooks::new(Fake::new(vec![]));
    let states = webhooks.replace(&[configuration(
        "c",
        &[
            webhook("a.example.com", "", &["Retain"], ["*", "v1", "Deployment"]),
            webhook("b.example.com", "", &["InterpretHealth"], DEPLOYMENTS),
            webhook(
                "c.example.com",
                "",
                &["Retain", "InterpretHealth"],
                ["apps", "*", "*"],
            ),
            webhook("d.example.com", "", &["Retain"], ["apps", "v2", "Deployment"]),
            webhook("e.example.com", "", &["Retain"], ["", "v1", "Pod"]),
        ],
    )]);
    let told: Vec<_> = states[0].shadowed.iter().map(ToString::to_string).collect();
    let says = |webhook: &str, operation: &str, by: &str| {
        format!("webhook {webhook} is not called for {operation} of objects that webhook c/{by} also selects")
    };
    assert_eq!(
        told,
        [
            says("c.example.com", "Retain", "a.example.com"),
            says("c.example.com", "InterpretHealth", "b.example.com"),
            says("d.example.com", "Retain", "c.example.com"),
        ]
    );
}

#[tokio::test]
async fn customizations_precede_webhooks_and_built_in_rules() {
    let customizations = Customizations::default();
    customizations.replace(&[json!({
        "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
        "metadata": {"name": "c"},
        "spec": {
            "targets": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "customizations": {"replicaResource": {"replicasPath": ".spec.replicas"}},
        },
    })]);
    let fake = Fake::new(vec![("/x", json!({"healthy": false, "replicas": 9}))]);
    let webhooks = Webhooks::new(fake.clone());
    let operations = ["InterpretReplica", "InterpretHealth"];
    webhooks.replace(&[configuration(
        "c",
        &[webhook("a.example.com", "x", &operations, DEPLOYMENTS)],
    )]);
    let interpreter = ResourceInterpreter::new(vec![
        Arc::new(customizations),
        Arc::new(webhooks),
        Arc::new(NativeInterpreter::new(|| jiff::Timestamp::UNIX_EPOCH)),
    ]);
    assert_eq!(interpreter.replicas(&deployment()).await.unwrap().unwrap().0, 2);
    assert!(fake.called_paths().is_empty());
    assert_eq!(interpreter.health(&deployment()).await.0, ObjectHealth::Unhealthy);
    assert_eq!(fake.called_paths(), ["/x"]);
    let revised = interpreter.revise_replicas(&deployment(), 3).await.unwrap();
    assert_eq!(revised["spec"]["replicas"], 3);
    assert_eq!(fake.called_paths(), ["/x"]);
}

#[tokio::test]
async fn a_failure_is_final_unless_it_is_ignored() {
    let mut object = deployment();
    object["status"] = json!({"observedGeneration": 0});
    let fails = |policy: Option<&str>, path: &str| {
        let mut hook = webhook("a.example.com", path, &["*"], DEPLOYMENTS);
        if let Some(policy) = policy {
            hook["failurePolicy"] = policy.into();
        }
        configuration("c", &[hook])
    };
    let refuses = json!({"successful": false, "status": {"message": "no", "code": 403}});
    for (object_of, says, expected) in [
        (fails(None, "x"), vec![], ObjectHealth::Unknown),
        (fails(Some("Fail"), "x"), vec![], ObjectHealth::Unknown),
        // Built-in rules apply to Kubernetes' own kinds.
        (fails(Some("Ignore"), "x"), vec![], ObjectHealth::Unhealthy),
        (
            fails(Some("Ignore"), "x"),
            vec![("/x", json!({}))],
            ObjectHealth::Unhealthy,
        ),
        (
            fails(Some("Ignore"), "x"),
            vec![("/x", json!({"uid": "u2"}))],
            ObjectHealth::Unhealthy,
        ),
        // A failure that the webhook reports is never ignored.
        (
            fails(Some("Ignore"), "x"),
            vec![("/x", refuses)],
            ObjectHealth::Unknown,
        ),
        (
            fails(Some("Ignore"), "x"),
            vec![("/x", json!({"healthy": true}))],
            ObjectHealth::Healthy,
        ),
    ] {
        let is_ignored = expected == ObjectHealth::Unhealthy;
        let fake = Fake::new(says);
        let webhooks = Webhooks::new(fake.clone());
        webhooks.replace(&[object_of]);
        let interpreter = ResourceInterpreter::new(vec![
            Arc::new(webhooks),
            Arc::new(NativeInterpreter::new(|| jiff::Timestamp::UNIX_EPOCH)),
        ]);
        object["metadata"]["generation"] = 1.into();
        let (health, error) = interpreter.health(&object).await;
        assert_eq!(health, expected);
        if let Some(error) = error {
            assert_eq!(
                error.to_string(),
                "ResourceInterpreterWebhookConfiguration c, webhook a.example.com failed at InterpretHealth of Deployment n/d"
            );
        }
        assert_eq!(fake.ignored.lock().len(), usize::from(is_ignored));
    }
}

#[tokio::test]
async fn after_an_ignored_failure_the_next_webhook_is_called() {
    let fake = Fake::new(vec![("/second", json!({"healthy": false}))]);
    let webhooks = Webhooks::new(fake.clone());
    let mut first = webhook("a.example.com", "first", &["*"], DEPLOYMENTS);
    first["failurePolicy"] = "Ignore".into();
    let second = webhook("b.example.com", "second", &["*"], DEPLOYMENTS);
    webhooks.replace(&[configuration("c", &[second, first])]);
    assert_eq!(
        interpreter_of(webhooks).health(&deployment()).await.0,
        ObjectHealth::Unhealthy
    );
    assert_eq!(fake.called_paths(), ["/first", "/second"]);
    assert_eq!(*fake.ignored.lock(), ["c/a.example.com: connection refused"]);
}

#[tokio::test]
async fn questions_to_an_invalid_webhook_fail() {
    let mut hook = webhook("a.example.com", "x", &["*"], DEPLOYMENTS);
    hook["interpreterContextVersions"] = json!(["v2"]);
    hook["failurePolicy"] = "Ignore".into();
    let mut odd = webhook("b.example.com", "x", &["*"], ["", "v1", "Pod"]);
    odd["timeoutSeconds"] = "soon".into();
    let webhooks = Webhooks::new(Fake::new(vec![]));
    let good = webhook("c.example.com", "x", &["*"], ["", "v1", "Node"]);
    let states = webhooks.replace(&[configuration("c", &[hook, odd, good])]);
    assert!(matches!(&states[0].usage, WebhookUsage::Failing(problems) if problems.len() == 2));
    let interpreter = interpreter_of(webhooks);
    let error = interpreter.retain(&deployment(), &json!({})).await.unwrap_err();
    assert_eq!(
        error.source.to_string(),
        "cannot be called: webhooks[0].interpreterContextVersions: must have v1alpha1, the only supported version"
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    assert!(interpreter.retain(&pod, &json!({})).await.is_err());
    assert!(interpreter.has_interpreter(Operation::Retain, &pod));
}

#[tokio::test]
async fn an_invalid_configuration_keeps_the_previous_webhooks() {
    let fake = Fake::new(vec![
        ("/old", json!({"healthy": true})),
        ("/new", json!({"healthy": false})),
    ]);
    let webhooks = Arc::new(Webhooks::new(fake));
    let interpreter = ResourceInterpreter::new(vec![webhooks.clone()]);
    let hook = |path: &str| webhook("a.example.com", path, &["*"], DEPLOYMENTS);
    let mut broken = hook("new");
    broken["clientConfig"]["caBundle"] = "!".into();
    for (objects, usage, expected) in [
        (
            vec![configuration("c", &[hook("old")])],
            "Used",
            ObjectHealth::Healthy,
        ),
        (
            vec![configuration("c", std::slice::from_ref(&broken))],
            "Kept",
            ObjectHealth::Healthy,
        ),
        (
            vec![configuration("c", std::slice::from_ref(&broken))],
            "Kept",
            ObjectHealth::Healthy,
        ),
        (
            vec![configuration("c", &[hook("new")])],
            "Used",
            ObjectHealth::Unhealthy,
        ),
        (vec![], "", ObjectHealth::Healthy),
        (
            vec![configuration("c", std::slice::from_ref(&broken))],
            "Failing",
            ObjectHealth::Unknown,
        ),
        (vec![json!({"kind": "Pod"})], "Unusable", ObjectHealth::Healthy),
    ] {
        let states = webhooks.replace(&objects);
        let told: Vec<_> = states.iter().map(|state| format!("{:?}", state.usage)).collect();
        assert!(told.iter().all(|told| told.starts_with(usage)), "{told:?}");
        assert_eq!(interpreter.health(&deployment()).await.0, expected, "{usage}");
    }
    let twice = [
        configuration("c", &[hook("old")]),
        configuration("c", &[hook("new")]),
    ];
    let states = webhooks.replace(&twice);
    assert_eq!(states[0].usage, WebhookUsage::Used);
    assert!(matches!(&states[1].usage, WebhookUsage::Unusable(_)));
    assert_eq!(interpreter.health(&deployment()).await.0, ObjectHealth::Healthy);
}

#[tokio::test]
async fn questions_fail_until_webhooks_are_listed() {
    let webhooks = Arc::new(Webhooks::new(Fake::new(vec![])));
    let interpreter = ResourceInterpreter::new(vec![webhooks.clone()]);
    let error = interpreter.retain(&deployment(), &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "Webhooks failed at Retain of Deployment n/d");
    assert_eq!(
        error.source.to_string(),
        "waiting for the first list of ResourceInterpreterWebhookConfigurations"
    );
    webhooks.replace(&[]);
    assert_eq!(
        interpreter.retain(&deployment(), &json!({})).await.unwrap(),
        deployment()
    );
}

#[test]
fn the_crd_is_structural_and_bounded() {
    insta::assert_yaml_snapshot!(webhook_configuration_crd());
}
