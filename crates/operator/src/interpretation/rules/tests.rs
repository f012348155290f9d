use serde_json::json;
use windlass_cluster::watch::Watch;

use super::*;

fn interpretation(version: &str, kind: &str, condition: Value) -> Value {
    json!({
        "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
        "metadata": {"name": "widgets", "resourceVersion": version},
        "spec": {
            "targets": [{"apiVersion": "example.com/v1", "kind": kind}],
            "customizations": {"healthInterpretation": {"condition": condition}},
        },
    })
}

struct Reader {
    index: Index,
    customizations: Customizations,
    webhooks: CachedWebhooks,
    rules: InterpretationRules,
}

impl Reader {
    fn new() -> Self {
        let caller = Arc::new(interpreter::webhook::InterpreterClient::default());
        Self {
            index: Index::new(),
            customizations: Customizations::default(),
            webhooks: CachedWebhooks::new(caller, Arc::default()),
            rules: InterpretationRules::default(),
        }
    }

    fn read(&mut self) -> Vec<InterpretationNews> {
        let Self {
            index,
            customizations,
            webhooks,
            rules,
        } = self;
        let (rules, news) = rules.refreshed(index, Vec::new(), customizations, webhooks);
        self.rules = rules;
        assert!(self.rules.is_current(&self.index, &[]));
        news
    }

    fn store(&mut self, object: Value) {
        let watch = Watch::all(Kind::from_key(&ObjectKey::from_object(&object).unwrap()));
        self.index.apply(&watch, object);
        assert!(!self.rules.is_current(&self.index, &[]));
    }

    fn unusable(&self, kind: &str) -> Option<&str> {
        let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}});
        let unusable = self.rules.unusable_for(Operation::InterpretHealth, &object)?;
        Some(&unusable.message)
    }
}

#[test]
fn a_problem_of_a_customization_is_reported_once() {
    let mut reader = Reader::new();
    assert!(
        !reader.rules.is_current(&reader.index, &[]),
        "before the first refresh it is unknown whether there are any"
    );
    assert!(reader.read().is_empty() && reader.rules.is_empty());
    reader.store(interpretation("1", "Widget", json!({"type": 1})));
    let news = reader.read();
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].message.starts_with("cannot be used: spec"), "{news:?}");
    let unusable = reader.unusable("Widget").unwrap();
    assert!(
        unusable.starts_with("ResourceInterpretation widgets cannot be used"),
        "{unusable}"
    );
    assert_eq!(reader.unusable("Gadget"), None);
    assert!(reader.read().is_empty());
    reader.store(interpretation("2", "Widget", json!({"type": 1})));
    assert!(reader.read().is_empty(), "no news");
    reader.store(interpretation("3", "Widget", json!({"type": "Ready"})));
    assert!(reader.read().is_empty());
    assert_eq!(reader.unusable("Widget"), None);
    reader.store(interpretation("4", "Widget", json!({"type": 1})));
    let news = reader.read();
    assert!(
        news[0].message.starts_with("the previous version stays in use"),
        "{news:?}"
    );
    assert_eq!(reader.unusable("Widget"), None);
}

#[test]
fn an_overruled_customization_is_reported_once() {
    let mut reader = Reader::new();
    let mut named = |name: &str, version: &str| {
        let mut named = interpretation(version, "Widget", json!({"type": "Ready"}));
        named["metadata"]["name"] = name.into();
        reader.store(named);
        let news = reader.read();
        news.iter()
            .map(|news| (news.problem.reason(), news.object["metadata"]["name"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("b", "1"), []);
    assert_eq!(named("a", "2"), [("CustomizationOverruled", json!("b"))]);
    assert_eq!(named("b", "3"), [], "the problem was reported before");
    assert_eq!(named("c", "4"), [("CustomizationOverruled", json!("c"))]);
}

fn webhooks(name: &str, version: &str, url: &str) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": name, "resourceVersion": version},
        "webhooks": [{
            "name": "w.example.com", "clientConfig": {"url": url}, "interpreterContextVersions": ["v1alpha1"],
            "rules": [{"operations": ["Retain"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["Widget"]}],
        }],
    })
}

fn reasons(news: &[InterpretationNews]) -> Vec<(&str, &str)> {
    let of = |news: &InterpretationNews| news.problem.reason();
    news.iter()
        .map(|news| (of(news), news.message.as_str()))
        .collect()
}

#[test]
fn a_problem_of_webhooks_is_reported_once() {
    let mut reader = Reader::new();
    reader.store(webhooks("b", "1", "https://b.example.com"));
    assert!(reader.read().is_empty());
    reader.store(webhooks("a", "2", "https://a.example.com"));
    let news = reader.read();
    assert_eq!(
        reasons(&news),
        [(
            "WebhookShadowed",
            "webhook w.example.com is not called for Retain of objects that webhook a/w.example.com also selects"
        )]
    );
    assert_eq!(news[0].object["metadata"]["name"], "b");
    reader.store(webhooks("b", "3", "https://b.example.com"));
    assert!(reader.read().is_empty(), "the problem was reported before");
    reader.store(webhooks("a", "4", "http://a.example.com"));
    let news = reader.read();
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].problem, InterpretationProblem::Webhook);
    assert!(
        news[0].message.contains("the previous version stays in use"),
        "{news:?}"
    );
    reader.store(webhooks("0", "5", "http://0.example.com"));
    let news = reader.read();
    assert!(
        reasons(&news)
            .iter()
            .any(|(_, said)| said.starts_with("has webhooks that cannot be called: webhooks[0]")),
        "{news:?}"
    );
}

#[test]
fn webhook_configurations_have_a_single_watch() {
    let kind = kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION;
    let target = windlass_trust::injection::KINDS
        .iter()
        .find(|target| target.kind == kind.kind)
        .unwrap();
    assert_eq!(Watch::for_target(target).collect::<Vec<_>>(), [Watch::all(kind)]);
}

#[test]
fn kinds_that_cannot_be_listed_are_recorded() {
    let Reader {
        index,
        customizations,
        webhooks,
        rules,
    } = Reader::new();
    let unlisted = vec![kinds::RESOURCE_INTERPRETATION];
    assert!(!rules.is_current(&index, &unlisted));
    let (rules, _) = rules.refreshed(&index, unlisted.clone(), &customizations, &webhooks);
    assert!(rules.is_current(&index, &unlisted) && !rules.is_current(&index, &[]));
    assert_eq!(rules.unlisted(), unlisted);
}

#[test]
fn an_unusable_customization_may_answer_its_kinds_and_operations() {
    for (target, expected) in [
        (json!({"target": {"kind": "Widget"}}), true),
        (json!({"target": {"kind": "Gadget"}}), false),
        (
            json!({"targets": [{"kind": "Gadget"}, {"kinds": ["A", "Widget"]}]}),
            true,
        ),
        (json!({"targets": [{"kind": "*"}]}), true),
        (json!({"targets": 3, "target": "Widget"}), false),
    ] {
        let mut customization = json!({ "spec": target });
        customization["spec"]["customizations"] = json!({"retention": 3});
        let widget = json!({"kind": "Widget"});
        let answers = |operation| may_answer(&customization, operation, &widget);
        assert_eq!(answers(Operation::Retain), expected, "{target}");
        assert!(!answers(Operation::InterpretHealth));
    }
}
