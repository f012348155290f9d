//! Selection of customizations for an object.

use std::{slice, sync::Arc};

use serde_json::{Value, json};

use super::{customization, interpretation, messages};
use crate::{
    Answer, Operation, Question, ResourceInterpreter,
    customization::{CustomizationState, Customizations},
    resource_interpreter::ObjectHealth,
};

fn health(value: i64) -> Value {
    json!({"healthInterpretation": {"all": [{"path": ".n", "operator": "Equals", "value": value}]}})
}

fn exactly() -> Value {
    json!([{"apiVersion": "apps/v1", "kind": "Deployment"}])
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "n": 1,
        "metadata": {"name": "a", "namespace": "n", "labels": {"app": "x"}},
    })
}

/// The names of the interpreters for InterpretHealth, in the order of precedence.
fn interpreters_of(objects: &[Value], object: &Value) -> Vec<String> {
    let customizations = Customizations::default();
    for state in customizations.replace(objects) {
        assert_eq!(state, CustomizationState::Used);
    }
    let found = crate::InterpreterSource::interpreters(&customizations, Operation::InterpretHealth, object);
    found.iter().map(|interpreter| interpreter.name()).collect()
}

#[test]
fn the_most_specific_target_answers_then_the_first_name() {
    let own = |name: &str, target: Value| interpretation(name, json!([target]), "Replace", health(1));
    let any = own("e-any", json!({"apiVersion": "*", "kind": "*"}));
    let kind = own("d-kind", json!({"apiVersion": "apps/v1", "kind": "Deployment"}));
    let label = own(
        "c-label",
        json!({"apiVersion": "*", "kind": "*", "labelSelector": {"matchLabels": {"app": "x"}}}),
    );
    let name = own("b-name", json!({"apiVersion": "*", "kind": "*", "name": "a"}));
    let karmada = customization("d-kind", "apps/v1", "Deployment", health(1));
    let later = customization("z", "apps/v1", "Deployment", health(1));
    let other = own("a-other", json!({"apiVersion": "apps/v1", "kind": "StatefulSet"}));
    let empty = customization(
        "a-empty",
        "apps/v1",
        "Deployment",
        json!({"healthInterpretation": {"luaScript": ""}}),
    );
    for (objects, expected) in [
        (vec![&any, &kind, &label, &name], "ResourceInterpretation b-name"),
        (vec![&any, &kind, &label], "ResourceInterpretation c-label"),
        (vec![&any, &kind], "ResourceInterpretation d-kind"),
        (vec![&any, &other], "ResourceInterpretation e-any"),
        (
            vec![&later, &kind, &karmada],
            "ResourceInterpreterCustomization d-kind",
        ),
        (vec![&later, &any, &empty], "ResourceInterpreterCustomization z"),
    ] {
        let mut objects: Vec<_> = objects.into_iter().cloned().collect();
        assert_eq!(interpreters_of(&objects, &deployment()), [expected]);
        objects.reverse();
        assert_eq!(interpreters_of(&objects, &deployment()), [expected]);
    }
    assert_eq!(
        interpreters_of(&[kind, other], &json!({"kind": "Deployment"})),
        [""; 0]
    );
}

#[test]
fn the_most_specific_of_several_targets_counts() {
    let several = json!([{"apiVersion": "*", "kind": "*"}, {"apiVersion": "*", "kind": "*", "name": "a"}]);
    let objects = [
        interpretation("a", exactly(), "Replace", health(1)),
        interpretation("b", several, "Replace", health(1)),
    ];
    assert_eq!(
        interpreters_of(&objects, &deployment()),
        ["ResourceInterpretation b"]
    );
    let mut other = deployment();
    other["metadata"]["name"] = json!("other");
    assert_eq!(interpreters_of(&objects, &other), ["ResourceInterpretation a"]);
}

#[test]
fn chaining_interpreters_precede_replacing_ones() {
    let objects = [
        interpretation("a", exactly(), "Replace", health(1)),
        interpretation("b", exactly(), "Chain", health(1)),
        interpretation(
            "c",
            json!([{"apiVersion": "*", "kind": "*", "name": "a"}]),
            "Chain",
            health(1),
        ),
        interpretation("d", json!([{"apiVersion": "*", "kind": "*"}]), "Chain", health(1)),
    ];
    let expected = [
        "ResourceInterpretation c",
        "ResourceInterpretation b",
        "ResourceInterpretation a",
    ];
    assert_eq!(interpreters_of(&objects, &deployment()), expected);
}

#[tokio::test]
async fn a_chain_runs_all_interpreters() {
    let customizations = Arc::new(Customizations::default());
    let retention = |path: &str| json!({"retention": {"fields": [path]}});
    customizations.replace(&[
        interpretation("a", exactly(), "Chain", retention(".a")),
        interpretation(
            "b",
            json!([{"apiVersion": "apps/v1", "kind": "*"}]),
            "Chain",
            retention(".b"),
        ),
        interpretation(
            "c",
            json!([{"apiVersion": "*", "kind": "*"}]),
            "Replace",
            retention(".c"),
        ),
        interpretation("d", exactly(), "Chain", health(1)),
        interpretation(
            "e",
            json!([{"apiVersion": "*", "kind": "*"}]),
            "Replace",
            health(2),
        ),
    ]);
    let interpreter = ResourceInterpreter::new(vec![customizations]);
    let observed = json!({"a": 1, "b": 1, "c": 1, "d": 1});
    let mut expected = deployment();
    expected.as_object_mut().unwrap().extend([
        ("a".into(), 1.into()),
        ("b".into(), 1.into()),
        ("c".into(), 1.into()),
    ]);
    assert_eq!(
        interpreter.retain(&deployment(), &observed).await.unwrap(),
        expected
    );
    let (health, error) = interpreter.health(&deployment()).await;
    assert_eq!(health, ObjectHealth::Unhealthy, "{error:?}");
}

#[tokio::test]
async fn dependencies_of_equal_specificity_are_united() {
    let references = |names: &[&str]| {
        let reference = |name: &&str| json!({"apiVersion": "v1", "kind": "Secret", "namePath": name});
        let references: Vec<_> = names.iter().map(reference).collect();
        json!({"dependencyInterpretation": {"references": references}})
    };
    let any = json!([{"apiVersion": "*", "kind": "*"}]);
    let objects = [
        customization(
            "b",
            "apps/v1",
            "Deployment",
            references(&[".names[1]", ".names[0]"]),
        ),
        customization(
            "a",
            "apps/v1",
            "Deployment",
            references(&[".names[2]", ".names[0]"]),
        ),
        interpretation("z", any, "Replace", references(&[".other"])),
    ];
    let customizations = Arc::new(Customizations::default());
    customizations.replace(&objects);
    let interpreter = ResourceInterpreter::new(vec![customizations.clone()]);
    let mut object = deployment();
    object["names"] = json!(["c", "a", "b"]);
    object["other"] = json!("other");
    let found = interpreter.dependencies(&object).await.unwrap();
    let names: Vec<_> = found
        .iter()
        .filter_map(|reference| reference.name.as_deref())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    let interpreters =
        crate::InterpreterSource::interpreters(&*customizations, Operation::InterpretDependency, &object);
    assert_eq!(
        interpreters[0].name(),
        "ResourceInterpreterCustomization a, ResourceInterpreterCustomization b"
    );
}

#[tokio::test]
async fn every_declarative_rule_is_answered() {
    let customizations = Arc::new(Customizations::default());
    let states = customizations.replace(&[interpretation(
        "a",
        exactly(),
        "Replace",
        json!({
            "replicaResource": {"replicasPath": ".spec.size"},
            "replicaRevision": {"replicasPath": ".spec.size"},
            "statusReflection": {"fields": [".status.phase"]},
            "healthInterpretation": {"condition": {"type": "Ready"}},
        }),
    )]);
    assert_eq!(states, [CustomizationState::Used]);
    let interpreter = ResourceInterpreter::new(vec![customizations]);
    let mut object = deployment();
    object["spec"] = json!({"size": 2});
    object["status"] = json!({"phase": "Odd", "conditions": [{"type": "Ready", "status": "True"}]});
    assert_eq!(interpreter.replicas(&object).await.unwrap(), Some((2, None)));
    assert_eq!(
        interpreter.revise_replicas(&object, 5).await.unwrap()["spec"]["size"],
        5
    );
    assert_eq!(
        interpreter.status(&object).await.unwrap(),
        Some(json!({"phase": "Odd"}))
    );
    assert_eq!(interpreter.health(&object).await.0, ObjectHealth::Healthy);
    assert_eq!(
        interpreter
            .ask(Question::Component { object: &object })
            .await
            .unwrap(),
        None::<Answer>
    );
    object["spec"] = json!({"size": "2"});
    let error = interpreter.replicas(&object).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "ResourceInterpretation a failed at InterpretReplica of Deployment n/a"
    );
    assert_eq!(
        error.source.to_string(),
        ".spec.size: \"2\" is not a number of replicas"
    );
}

#[test]
fn an_invalid_change_keeps_the_previous_customization() {
    let customizations = Customizations::default();
    let count = || {
        let found = crate::InterpreterSource::interpreters(
            &customizations,
            Operation::InterpretHealth,
            &deployment(),
        );
        found.len()
    };
    let good = interpretation("a", exactly(), "Replace", health(1));
    let broken = interpretation("a", exactly(), "Sometimes", health(1));
    let problem = "spec.mode: unknown variant `Sometimes`, expected `Replace` or `Chain`";
    match &customizations.replace(slice::from_ref(&broken))[..] {
        [CustomizationState::Unusable(problems)] => assert_eq!(messages(problems.clone()), [problem]),
        other => panic!("{other:?}"),
    }
    assert_eq!(count(), 0);
    assert_eq!(
        customizations.replace(slice::from_ref(&good)),
        [CustomizationState::Used]
    );
    assert_eq!(count(), 1);
    for _ in 0..2 {
        match &customizations.replace(&[broken.clone(), json!(7)])[..] {
            [
                CustomizationState::Kept(problems),
                CustomizationState::Unusable(_),
            ] => {
                assert_eq!(messages(problems.clone()), [problem]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(count(), 1);
    }
    match &customizations.replace(&[good.clone(), good])[..] {
        [CustomizationState::Used, CustomizationState::Unusable(problems)] => {
            assert_eq!(messages(problems.clone()), ["metadata.name: duplicate \"a\""]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(customizations.replace(&[]), []);
    assert_eq!(count(), 0);
}
