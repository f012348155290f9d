use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    placeholder::{PlaceholderText, percent_encoded, plain},
    *,
};
use crate::{PolicyKey, PolicyKind, api::OverrideRuleTemplate, problem::PolicyProblems};

fn key(namespace: &str) -> PolicyKey {
    let kind = if namespace.is_empty() {
        PolicyKind::ClusterOverridePolicy
    } else {
        PolicyKind::OverridePolicy
    };
    PolicyKey {
        kind,
        namespace: namespace.into(),
        name: "a".into(),
    }
}

fn read(namespace: &str, reference: Value) -> (RuleReferences, Vec<String>) {
    let template = json!({"type": "labels", "operation": "add", "path": "l", "valueRef": reference});
    let template: OverrideRuleTemplate = serde_json::from_value(template).unwrap();
    let mut problems = PolicyProblems::default();
    let references = RuleReferences::from_override_template(&key(namespace), &template, &mut problems);
    let problems = problems.into_problems();
    (references, problems.iter().map(ToString::to_string).collect())
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "labels": {"example.com/app": "x y"}, "annotations": {"up": "../.."}},
        "spec": {"priority": 7, "hostNetwork": true},
    })
}

/// The references to fetch, or the problems, as text.
#[track_caller]
fn wanted(namespace: &str, reference: Value) -> Result<Vec<DataReference>, String> {
    let (references, problems) = read(namespace, reference);
    assert_eq!(problems, [""; 0]);
    match references.resolve(&pod(), "n", &Answers::default()) {
        ReferenceResolution::Ready(_) => Ok(Vec::new()),
        ReferenceResolution::Missing(missing) => Ok(missing),
        ReferenceResolution::Failed(error) => Err(error),
    }
}

fn of_config_map(selector: Value) -> Value {
    let mut k8s = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    k8s.as_object_mut()
        .unwrap()
        .extend(selector.as_object().unwrap().clone());
    json!({"from": "k8s", "path": "/data/a", "k8s": k8s})
}

fn url_of(http: Value) -> String {
    let reference = json!({"from": "http", "path": "body.a", "http": http});
    match wanted("", reference).unwrap().remove(0) {
        DataReference::Http(request) => request.url,
        other => panic!("{other}"),
    }
}

#[test]
fn a_name_can_have_several_placeholders() {
    let name = "{{metadata.namespace}}-{{ spec.priority }}-{{/spec/hostNetwork}}-{{metadata.name}}";
    let wanted = wanted("", of_config_map(json!({"name": name}))).unwrap();
    assert_eq!(wanted[0].to_string(), "ConfigMap n/n-7-true-a");
    let wanted = self::wanted(
        "",
        of_config_map(json!({"name": "a", "namespace": "of-{{metadata.name}}"})),
    )
    .unwrap();
    assert_eq!(wanted[0].to_string(), "ConfigMap of-a/a");
}

#[test]
fn selectors_can_have_placeholders() {
    let selector = json!({
        "matchLabels": {"app": "{{metadata.labels.example.com/app}}"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["{{metadata.name}}", "b"]}],
    });
    let wanted = wanted("", of_config_map(json!({"labelSelector": selector}))).unwrap();
    let DataReference::Objects {
        namespace,
        label_selector,
        ..
    } = &wanted[0]
    else {
        panic!()
    };
    assert_eq!(namespace, "n");
    assert_eq!(
        *label_selector,
        json!({"matchLabels": {"app": "x y"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["a", "b"]}]})
    );
}

#[test]
fn the_first_object_by_name_or_null_is_used() {
    let object = |name: &str, key: &str| json!({"metadata": {"name": name}, "data": {"key": key}});
    let selector = json!({"labelSelector": {}, "fieldSelector": {"matchFields": {"data.key": "x"}}});
    let (references, _) = read("", of_config_map(selector));
    let need = references.needs(&pod(), "n").remove(0);
    for (found, expected) in [
        (
            json!([object("c", "x"), object("b", "x"), object("a", "y")]),
            object("b", "x"),
        ),
        (json!([object("a", "y")]), Value::Null),
        (json!([]), Value::Null),
    ] {
        let answers = [(need.clone(), FetchedAnswer::Found(found))]
            .into_iter()
            .collect();
        assert_eq!(
            references.resolve(&pod(), "n", &answers),
            ReferenceResolution::Ready(json!({"otherObject": expected}))
        );
    }
}

#[test]
fn values_cannot_change_the_server_of_a_url() {
    assert_eq!(
        url_of(
            json!({"url": "https://a.b/{{metadata.annotations.up}}/{{metadata.labels.example.com/app}}", "method": "GET"})
        ),
        "https://a.b/..%2F../x%20y"
    );
    assert_eq!(
        url_of(
            json!({"url": "https://a.b/c?d=e", "method": "GET", "params": {"q r": "{{metadata.labels.example.com/app}}&x=y", "p": "{{spec.priority}}"}})
        ),
        "https://a.b/c?d=e&p=7&q%20r=x%20y%26x%3Dy"
    );
    assert_eq!(
        url_of(json!({"url": "https://a.b", "method": "GET", "params": {"p": "1"}})),
        "https://a.b?p=1"
    );
    assert_eq!(percent_encoded(".."), "%2E%2E");
}

#[test]
fn the_answer_of_a_server_is_its_body() {
    let (references, _) = read(
        "",
        json!({"from": "http", "path": "body.a", "http": {"url": "https://a", "method": "GET"}}),
    );
    let need = references.needs(&pod(), "n").remove(0);
    let answers = [(need, FetchedAnswer::Found(json!({"a": 1})))]
        .into_iter()
        .collect();
    assert_eq!(
        references.resolve(&pod(), "n", &answers),
        ReferenceResolution::Ready(json!({"http": {"body": {"a": 1}}}))
    );
}

#[test]
fn a_missing_owner_is_not_an_error_for_existence_checks() {
    let (references, _) = read("", json!({"from": "owner"}));
    assert_eq!(
        references.resolve(&pod(), "n", &Answers::default()),
        ReferenceResolution::Ready(json!({"otherObject": null}))
    );
    let (references, _) = read("", json!({"from": "owner", "path": "/a"}));
    let told = references.resolve(&pod(), "n", &Answers::default());
    assert_eq!(
        told,
        ReferenceResolution::Failed("the object has no owner: metadata.ownerReferences is empty".into())
    );
}

#[test]
fn incomplete_references_are_reported() {
    for (reference, expected) in [
        (
            json!({"from": "k8s", "path": "/a"}),
            vec!["valueRef.k8s: is required with from: k8s"],
        ),
        (
            json!({"from": "http", "path": "a"}),
            vec!["valueRef.http: is required with from: http"],
        ),
        (
            of_config_map(json!({})),
            vec!["valueRef.k8s: must have name, labelSelector or fieldSelector"],
        ),
        (
            of_config_map(json!({"name": "{{a"})),
            vec!["valueRef.k8s.name: {{ without }}"],
        ),
        (
            of_config_map(json!({"name": "{{ }}"})),
            vec!["valueRef.k8s.name: a path is missing between {{ and }}"],
        ),
        (
            json!({"from": "http", "path": "a", "http": {
                "url": "https://{{metadata.name}}.b/", "method": "GET", "body": {}, "header": {"a b": "c", "d": "e\nf"}, "params": {"p": "{{"},
                "auth": {"secretRef": {"name": "s"}, "authUrl": "ftp://x", "expireDuration": "long"},
            }}),
            vec![
                "valueRef.http.url: the host must end before the first {{",
                "valueRef.http.params.p: {{ without }}",
                "valueRef.http.body: must not be set with method: GET",
                "valueRef.http.header: \"a b\" is not a name of a header",
                "valueRef.http.header.d: must be one line",
                "valueRef.http.auth.authUrl: must begin with https:// or http://",
                "valueRef.http.auth.expireDuration: is not a duration: use for example 10m",
                "valueRef.http.auth.secretRef.namespace: must be given: the policy has none",
            ],
        ),
        (
            json!({"from": "http", "path": "a", "http": {"url": "https://me:pw@a/", "method": "GET"}}),
            vec!["valueRef.http.url: must have no user name or password: use auth"],
        ),
        (
            json!({"from": "http", "path": "a", "http": {"url": "https:///a", "method": "GET"}}),
            vec!["valueRef.http.url: the host is missing"],
        ),
    ] {
        assert_eq!(read("", reference).1, expected);
    }
}

#[test]
fn an_override_policy_can_refer_to_its_own_namespace_only() {
    let confined = wanted("n", of_config_map(json!({"name": "a"}))).unwrap();
    let DataReference::Object {
        namespace,
        is_confined,
        ..
    } = &confined[0]
    else {
        panic!()
    };
    assert_eq!((namespace.as_str(), *is_confined), ("n", true));
    let (_, problems) = read("n", of_config_map(json!({"name": "a", "namespace": "m"})));
    assert_eq!(
        problems,
        [
            "valueRef.k8s.namespace: must be empty or \"n\": an OverridePolicy refers to objects of its own namespace only"
        ]
    );
    assert_eq!(
        wanted(
            "n",
            of_config_map(json!({"name": "a", "namespace": "{{metadata.name}}"}))
        ),
        Err("k8s.namespace is \"a\": an OverridePolicy refers to objects of its own namespace only".into())
    );
    let http = |namespace: &str| {
        let secret = json!({"name": "s", "namespace": namespace});
        json!({"from": "http", "path": "a", "http": {"url": "https://a", "method": "GET", "auth": {"secretRef": secret}}})
    };
    let DataReference::Http(request) = wanted("n", http("")).unwrap().remove(0) else {
        panic!()
    };
    assert_eq!(request.auth.unwrap().secret_ref.unwrap().namespace, "n");
    assert_eq!(
        read("n", http("m")).1,
        [
            "valueRef.http.auth.secretRef.namespace: must be empty or \"n\": an OverridePolicy refers to its own namespace only"
        ]
    );
}

#[test]
fn secrets_are_not_in_messages() {
    let auth = json!({"staticToken": "hidden", "password": "hidden"});
    let http =
        json!({"url": "https://a/b?key=hidden", "method": "POST", "params": {"key": "hidden"}, "auth": auth});
    let wanted = wanted("", json!({"from": "http", "path": "a", "http": http})).unwrap();
    assert_eq!(wanted[0].to_string(), "POST https://a/b");
    let DataReference::Http(request) = &wanted[0] else {
        panic!()
    };
    assert!(!format!("{:?}", request.auth).contains("hidden"));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[a{} .]{0,20}") {
        if let Ok(read) = PlaceholderText::parse(&text) {
            let filled = read.fill(&json!({"a": "v"}), plain);
            if !text.contains("{{") {
                prop_assert_eq!(filled, Ok(text));
            }
        }
    }

    #[test]
    fn an_encoded_value_contains_no_separators(text in ".*") {
        let encoded = percent_encoded(&text);
        prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        prop_assert!(encoded != "." && encoded != "..");
    }
}
