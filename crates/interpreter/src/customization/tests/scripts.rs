//! Scripts in customizations.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{customization, interpretation, messages};
use crate::{
    Operation, ResourceInterpreter,
    customization::{CustomizationRules, Customizations, admit},
    resource_interpreter::ObjectHealth,
};

fn script(operation: Operation, script: &str) -> Value {
    customization(
        "a",
        "apps/v1",
        "Deployment",
        json!({ CustomizationRules::field(operation): {"luaScript": script} }),
    )
}

fn problems(operation: Operation, written: &str) -> Vec<String> {
    admit(&script(operation, written), None, &[]).map_or_else(messages, |()| Vec::new())
}

#[test]
fn useful_scripts_are_accepted() {
    for (operation, written) in [
        (
            Operation::Retain,
            "function Retain(desired, observed) desired.spec.a = observed.spec.a return desired end",
        ),
        (
            Operation::Retain,
            "desiredObj.spec.a = runtimeObj.spec.a return desiredObj",
        ),
        (
            Operation::InterpretReplica,
            "function GetReplicas(obj) return obj.spec.replicas, nil end",
        ),
        (
            Operation::InterpretComponent,
            "function GetComponents(obj) return nil end",
        ),
        (
            Operation::ReviseReplica,
            "function ReviseReplica(obj, replica) obj.spec.replicas = replica return obj end",
        ),
        (
            Operation::InterpretStatus,
            "function ReflectStatus(obj) return obj.status end",
        ),
        (
            Operation::AggregateStatus,
            "function AggregateStatus(obj, items) for i = 1, #items do obj.status = items[i].status end return obj end",
        ),
        // Karmada's own example, which returns nothing for an unhealthy object.
        (
            Operation::InterpretHealth,
            "function InterpretHealth(obj) if obj.status.readyReplicas == obj.spec.replicas then return true end end",
        ),
        (
            Operation::InterpretDependency,
            "local kube = require('kube') function GetDependencies(obj) return kube.getPodDependencies(obj.spec.template, 'n') end",
        ),
        // Missing fields in the samples do not reject a script.
        (
            Operation::InterpretHealth,
            "function InterpretHealth(obj) return obj.status.deeply.nested.field == 1 end",
        ),
        (
            Operation::InterpretReplica,
            "function GetReplicas(obj) return obj.spec.parallelism end",
        ),
        (
            Operation::InterpretHealth,
            "function InterpretHealth(obj) if obj.status == nil then return 'odd' end return true end",
        ),
    ] {
        assert_eq!(problems(operation, written), [""; 0], "{written}");
    }
}

#[test]
fn useless_scripts_are_rejected() {
    for (operation, written, expected) in [
        (
            Operation::InterpretHealth,
            "function InterpretHealth(obj) return obj. end",
            "ResourceInterpreterCustomization a",
        ),
        (
            Operation::InterpretHealth,
            "function Healthy(obj) return true end",
            "not found function InterpretHealth",
        ),
        (
            Operation::InterpretHealth,
            "InterpretHealth = true",
            "not found function InterpretHealth",
        ),
        (
            Operation::InterpretHealth,
            "local a = nothing.field function InterpretHealth(obj) return true end",
            "nothing",
        ),
        (
            Operation::InterpretHealth,
            "function InterpretHealth(obj) return 'true' end",
            "InterpretHealth returned string, expected a boolean",
        ),
        (
            Operation::InterpretReplica,
            "function GetReplicas(obj) return {} end",
            "GetReplicas returned table, expected a number",
        ),
        (
            Operation::ReviseReplica,
            "function ReviseReplica(obj, replica) return 'replica' end",
            "ReviseReplica returned string, expected a table",
        ),
        (
            Operation::InterpretHealth,
            "function InterpretHealth(obj) while true do end end",
            "the script took ",
        ),
    ] {
        let found = problems(operation, written);
        let field = format!(
            "spec.customizations.{}.luaScript: ",
            CustomizationRules::field(operation)
        );
        assert_eq!(found.len(), 1, "{written}: {found:?}");
        assert!(
            found[0].starts_with(&field) && found[0].contains(expected),
            "{written}: {found:?}"
        );
    }
    let several = json!({
        "healthInterpretation": {"luaScript": "a"},
        "statusReflection": {"luaScript": "b = 1"},
        "retention": {"fields": ["["]},
    });
    let problems = messages(admit(&customization("a", "v1", "", several), None, &[]).unwrap_err());
    let fields: Vec<_> = problems
        .iter()
        .map(|problem| problem.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.target.kind",
            "spec.customizations.retention.fields[0]",
            "spec.customizations.healthInterpretation.luaScript",
            "spec.customizations.statusReflection.luaScript",
        ]
    );
    let both = json!({"healthInterpretation": {"luaScript": "function InterpretHealth() return true end", "condition": {"type": "A"}}});
    let problems = admit(&customization("a", "v1", "A", both), None, &[]).unwrap_err();
    assert_eq!(
        messages(problems),
        ["spec.customizations.healthInterpretation: must not have both luaScript and declarative fields"]
    );
}

#[tokio::test]
async fn a_script_runs_after_the_retained_fields() {
    let customizations = Arc::new(Customizations::default());
    let retention = json!({"retention": {
        "fields": [".spec.replicas"],
        "luaScript": "function Retain(desired, observed) desired.spec.doubled = desired.spec.replicas * 2 return desired end",
    }});
    customizations.replace(&[customization("a", "apps/v1", "Deployment", retention)]);
    let interpreter = ResourceInterpreter::new(vec![customizations]);
    let object = |replicas: i64| json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas}});
    let retained = interpreter.retain(&object(1), &object(4)).await.unwrap();
    assert_eq!(retained["spec"], json!({"replicas": 4, "doubled": 8}));
}

#[tokio::test]
async fn dependency_scripts_are_united_with_declared_references() {
    let customizations = Arc::new(Customizations::default());
    let scripted = |name: &str| {
        let script = format!(
            "function GetDependencies(obj) return {{{{apiVersion = 'v1', kind = 'Secret', namespace = 'n', name = '{name}'}}}} end"
        );
        json!({"dependencyInterpretation": {"luaScript": script}})
    };
    let mut both = scripted("b");
    both["dependencyInterpretation"]["references"] =
        json!([{"apiVersion": "v1", "kind": "Secret", "namePath": ".secret"}]);
    let targets = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    customizations.replace(&[
        customization("a", "apps/v1", "Deployment", scripted("b")),
        customization("b", "apps/v1", "Deployment", scripted("c")),
        interpretation("c", targets, "Replace", both),
    ]);
    let interpreter = ResourceInterpreter::new(vec![customizations]);
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n"}, "secret": "a",
    });
    let found = interpreter.dependencies(&object).await.unwrap();
    let names: Vec<_> = found
        .iter()
        .filter_map(|reference| reference.name.as_deref())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn the_first_script_by_name_answers_even_if_it_fails() {
    let customizations = Arc::new(Customizations::default());
    let health = |script: &str| json!({"healthInterpretation": {"luaScript": script}});
    customizations.replace(&[
        customization(
            "b",
            "apps/v1",
            "Deployment",
            health("function InterpretHealth(obj) return true end"),
        ),
        customization(
            "a",
            "apps/v1",
            "Deployment",
            health("function InterpretHealth(obj) return obj.status.a.b end"),
        ),
    ]);
    let interpreter = ResourceInterpreter::new(vec![customizations]);
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "status": {"a": {"b": false}}});
    assert_eq!(interpreter.health(&object).await.0, ObjectHealth::Unhealthy);
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}});
    let (health, error) = interpreter.health(&object).await;
    assert_eq!(health, ObjectHealth::Unknown);
    assert_eq!(
        error.unwrap().to_string(),
        "ResourceInterpreterCustomization a failed at InterpretHealth of Deployment x"
    );
}
