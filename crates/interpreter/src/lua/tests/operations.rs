//! Arguments and results of each operation's function.

use serde_json::{Value, json};

use super::LIMITS;
use crate::{
    Answer, Question,
    lua::{LuaError, LuaProgram},
    question::AggregatedStatusItem,
};

fn interpret(script: &str, question: Question<'_>) -> Result<Answer, LuaError> {
    LuaProgram::compile("test", script)?.interpret(question, &LIMITS)
}

fn error(script: &str, question: Question<'_>) -> String {
    interpret(script, question).unwrap_err().to_string()
}

#[test]
fn replicas_are_a_number_and_requirements() {
    let object = json!({"spec": {"replicas": 3.7}});
    let question = Question::Replica { object: &object };
    let replicas = |body: &str| interpret(&format!("function GetReplicas(obj) {body} end"), question);
    let answer = |replicas| Answer::Replica {
        replicas,
        requirements: None,
    };
    assert_eq!(replicas("return obj.spec.replicas"), Ok(answer(3)));
    assert_eq!(replicas("return 2, nil"), Ok(answer(2)));
    assert_eq!(
        replicas("local t = {} for i = 1, 1000 do t[i] = 7 end t[2] = nil return unpack(t, 1, 1000)"),
        Ok(answer(7))
    );
    let needed = replicas("return 2, {resourceRequest = {cpu = '1000m', memory = 1024}, nodeClaim = {tolerations = {}}, namespace = 'n'}").unwrap();
    let Answer::Replica {
        requirements: Some(needed),
        ..
    } = needed
    else {
        panic!("{needed:?}")
    };
    assert_eq!(
        json!(needed),
        json!({"resourceRequest": {"cpu": "1", "memory": "1024"}, "nodeClaim": {}, "namespace": "n"})
    );
    for (body, expected) in [
        ("return nil", "GetReplicas returned nil, expected a number"),
        ("return '3'", "GetReplicas returned string, expected a number"),
        (
            "return 3, 'x'",
            "GetReplicas returned string, expected a table or nil as its second value",
        ),
        (
            "return 1e10",
            "the result of GetReplicas: the number of replicas does not fit into 32 bits",
        ),
        (
            "return 0/0",
            "the result of GetReplicas: the number of replicas does not fit into 32 bits",
        ),
    ] {
        assert_eq!(replicas(body).unwrap_err().to_string(), expected);
    }
    let error = replicas("return 1, {resourceRequest = {cpu = 'x'}}")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the result of GetReplicas: resourceRequest.cpu: \"x\" is not a quantity"),
        "{error}"
    );
}

#[test]
fn components_are_a_list_or_nil() {
    let question = Question::Component { object: &json!({}) };
    let script = |body: &str| format!("function GetComponents(obj) {body} end");
    assert_eq!(
        interpret(&script("return nil"), question),
        Ok(Answer::Component(vec![]))
    );
    assert_eq!(
        interpret(&script("return {}"), question),
        Ok(Answer::Component(vec![]))
    );
    let Ok(Answer::Component(components)) = interpret(
        &script("return {{name = 'a', replicas = 2, replicaRequirements = {resourceRequest = {cpu = 2}}}}"),
        question,
    ) else {
        panic!("no components");
    };
    assert_eq!(
        json!(components),
        json!([{"name": "a", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "2"}}}])
    );
    assert_eq!(
        error(&script("return 1"), question),
        "GetComponents returned number, expected a table"
    );
    assert!(error(&script("return {{name = 'a', replicas = 'x'}}"), question).contains("[0].replicas"));
}

#[test]
fn returned_objects_need_a_kind() {
    let object = json!({"kind": "x", "spec": {"replicas": 1, "empty": {}}});
    let question = Question::ReviseReplica {
        object: &object,
        replicas: 5,
    };
    let script = |body: &str| format!("function ReviseReplica(obj, replica) {body} end");
    assert_eq!(
        interpret(&script("obj.spec.replicas = replica return obj"), question),
        Ok(Answer::Object(
            json!({"kind": "x", "spec": {"replicas": 5, "empty": {}}})
        ))
    );
    assert_eq!(
        error(&script("return nil"), question),
        "ReviseReplica returned nil, expected a table"
    );
    assert_eq!(
        error(&script("return {}"), question),
        "the result of ReviseReplica: kind: is missing"
    );
}

#[test]
fn missing_status_items_are_nil() {
    let object = json!({"kind": "x"});
    let script = "function AggregateStatus(obj, items) obj.status = {items = items == nil and 'nil' or #items, first = items and items[1]} return obj end";
    let item = AggregatedStatusItem {
        cluster_name: "m1".to_owned(),
        status: Some(json!({"ready": 1})),
        applied: true,
        ..AggregatedStatusItem::default()
    };
    for (items, expected) in [
        (None, json!({"items": "nil"})),
        (Some(&[][..]), json!({"items": 0})),
        (
            Some(&[item][..]),
            json!({"items": 1, "first": {"clusterName": "m1", "status": {"ready": 1}, "applied": true}}),
        ),
    ] {
        let question = Question::AggregateStatus {
            object: &object,
            items,
        };
        assert_eq!(
            interpret(script, question),
            Ok(Answer::Object(json!({"kind": "x", "status": expected})))
        );
    }
}

#[test]
fn status_and_health_are_never_nil() {
    let object = json!({"status": {"ready": 1}});
    let status = Question::Status { object: &object };
    assert_eq!(
        interpret("function ReflectStatus(obj) return obj.status end", status),
        Ok(Answer::Status(Some(json!({"ready": 1}))))
    );
    assert_eq!(
        interpret("function ReflectStatus(obj) return {} end", status),
        Ok(Answer::Status(Some(json!({}))))
    );
    assert_eq!(
        error("function ReflectStatus(obj) end", status),
        "ReflectStatus returned nil, expected a table"
    );
    let health = Question::Health { object: &object };
    assert_eq!(
        interpret(
            "function InterpretHealth(obj) return obj.status.ready == 1 end",
            health
        ),
        Ok(Answer::Health(true))
    );
    assert_eq!(
        error("function InterpretHealth(obj) end", health),
        "InterpretHealth returned nil, expected a boolean"
    );
    assert_eq!(
        error("function Other() end", health),
        "not found function InterpretHealth"
    );
}

#[test]
fn dependencies_are_validated() {
    let question = Question::Dependency { object: &json!({}) };
    let script = |body: &str| format!("function GetDependencies(obj) {body} end");
    assert_eq!(
        interpret(&script("return {}"), question),
        Ok(Answer::Dependency(vec![]))
    );
    let selected = "return {{apiVersion = 'v1', kind = 'Pod', namespace = 'n', labelSelector = {matchLabels = {a = 'b'}}}}";
    assert!(interpret(&script(selected), question).is_ok());
    for (body, expected) in [
        ("return nil", "GetDependencies returned nil, expected a table"),
        (
            "return {{kind = 'Pod', name = 'p'}}",
            "the result of GetDependencies: [1]: apiVersion: is missing",
        ),
        (
            "return {{apiVersion = 'v1', name = 'p'}}",
            "the result of GetDependencies: [1]: kind: is missing",
        ),
        (
            "return {{apiVersion = 'v1', kind = 'Pod'}}",
            "the result of GetDependencies: [1]: name or labelSelector: is missing",
        ),
    ] {
        assert_eq!(error(&script(body), question), expected);
    }
}

#[test]
fn a_retention_may_be_only_a_function_body() {
    let (desired, observed) = (json!({"kind": "x"}), json!({"spec": 1}));
    let question = Question::Retain {
        desired: &desired,
        observed: &observed,
    };
    for script in [
        "desiredObj.spec = runtimeObj.spec return desiredObj",
        "function Retain(a, b) a.spec = b.spec return a end",
    ] {
        let program = LuaProgram::compile_retention("test", script).unwrap();
        assert_eq!(
            program.interpret(question, &LIMITS),
            Ok(Answer::Object(json!({"kind": "x", "spec": 1})))
        );
    }
    let error = LuaProgram::compile_retention("test", "return (").unwrap_err();
    assert_eq!(error.to_string(), "test:1: unexpected symbol near '<eof>'");
}

#[test]
fn every_line_is_traced() {
    let script = "function InterpretHealth(obj)\n  local ready = obj.ready\n  return ready == 1\nend";
    let program = LuaProgram::compile("test", script).unwrap();
    let object: Value = json!({"ready": 1});
    let trace = program
        .trace(Question::Health { object: &object }, &LIMITS)
        .unwrap();
    assert_eq!(trace.answer, Ok(Answer::Health(true)));
    let lines: Vec<_> = trace
        .lines
        .iter()
        .map(|line| (line.number, line.text.trim()))
        .collect();
    assert_eq!(lines, [(2, "local ready = obj.ready"), (3, "return ready == 1")]);
    assert!(trace.lines.iter().all(|line| line.memory > 0));
}

#[test]
fn errors_have_the_full_name_of_the_script() {
    let name = "ResourceInterpreterCustomization of a kind whose name is longer than sixty bytes";
    let program = LuaProgram::compile(name, "function InterpretHealth(obj) error('x') end").unwrap();
    let question = Question::Health { object: &json!({}) };
    let failed = program.interpret(question, &LIMITS).unwrap_err();
    assert_eq!(failed.to_string(), format!("{name}:1: x"));
}
