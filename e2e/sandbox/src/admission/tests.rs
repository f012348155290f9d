use serde_json::{Value, json};

use super::{
    RequestedResource, ReviewRequest, ServedVersion, condition_problems,
    conditions::{self, MatchResult},
    matching,
};

fn request() -> ReviewRequest {
    ReviewRequest {
        resource: RequestedResource {
            group: "sample.windlass.dev".to_owned(),
            version: "v1".to_owned(),
            resource: "widgets".to_owned(),
            subresource: String::new(),
        },
        kind: "Widget".to_owned(),
        name: "a".to_owned(),
        namespace: "ns".to_owned(),
        namespace_labels: json!({"kubernetes.io/metadata.name": "ns"}),
        operation: "CREATE",
        user: json!({}),
        object: json!({"metadata": {"labels": {"on": "yes"}}}),
        old_object: Value::Null,
        dry_run: false,
        options: Value::Null,
        equivalents: vec![ServedVersion {
            group: "sample.windlass.dev".to_owned(),
            version: "v1beta1".to_owned(),
        }],
    }
}

fn webhook(change: impl FnOnce(&mut Value)) -> Value {
    let mut webhook = json!({
        "name": "a.example.com",
        "rules": [{"apiGroups": ["sample.windlass.dev"], "apiVersions": ["v1"], "resources": ["widgets"],
                   "operations": ["CREATE"], "scope": "*"}],
    });
    change(&mut webhook);
    webhook
}

#[test]
fn rules_and_selectors_decide_which_webhooks_are_called() {
    let rule = |field: &str, value: Value| webhook(|webhook| webhook["rules"][0][field] = value);
    for (webhook, expected) in [
        (webhook(|_| {}), Some("v1")),
        (rule("apiGroups", json!(["*"])), Some("v1")),
        (rule("apiGroups", json!(["other"])), None),
        (rule("operations", json!(["UPDATE"])), None),
        (rule("operations", json!(["*"])), Some("v1")),
        (rule("resources", json!(["*/*"])), Some("v1")),
        (rule("resources", json!(["widgets/*"])), Some("v1")),
        (rule("resources", json!(["widgets/status"])), None),
        (rule("scope", json!("Cluster")), None),
        (rule("scope", json!("Namespaced")), Some("v1")),
        (rule("apiVersions", json!(["v1beta1"])), Some("v1beta1")),
        (
            webhook(|webhook| {
                webhook["rules"][0]["apiVersions"] = json!(["v1beta1"]);
                webhook["matchPolicy"] = json!("Exact");
            }),
            None,
        ),
        (
            webhook(|webhook| webhook["objectSelector"] = json!({"matchLabels": {"on": "yes"}})),
            Some("v1"),
        ),
        (
            webhook(|webhook| webhook["objectSelector"] = json!({"matchLabels": {"on": "no"}})),
            None,
        ),
        (
            webhook(|webhook| {
                webhook["namespaceSelector"] = json!({"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["other"]}]});
            }),
            None,
        ),
    ] {
        let version = matching::matched_version(&webhook, &request()).map(|version| version.version);
        assert_eq!(version.as_deref(), expected, "{webhook}");
    }
}

#[test]
fn webhook_configurations_never_match_webhooks() {
    let configurations = [
        json!({"metadata": {"name": "all"}, "webhooks": [webhook(|webhook| {
            webhook["rules"][0] = json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]});
        })]}),
    ];
    let mut request = request();
    assert_eq!(super::hook::matching_hooks(&configurations, &request).len(), 1);
    request.resource.group = "admissionregistration.k8s.io".to_owned();
    request.resource.resource = "validatingwebhookconfigurations".to_owned();
    assert!(super::hook::matching_hooks(&configurations, &request).is_empty());
}

#[test]
fn match_conditions_decide_whether_a_webhook_is_called() {
    let request = request();
    let webhook = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let verdict =
        |expression: &str| conditions::evaluate(&webhook(expression), &request, &json!({"spec": {"n": 1}}));
    assert_eq!(verdict("object.spec.n == 1"), MatchResult::Call);
    assert_eq!(verdict("object.spec.n == 2"), MatchResult::Skip);
    assert!(matches!(
        verdict("object.spec.missing == 2"),
        MatchResult::Failed(_)
    ));
    assert_eq!(condition_problems(&webhook("object.x +")).len(), 1);
    assert!(condition_problems(&webhook("true")).is_empty());
}
