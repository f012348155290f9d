//! Arbitrary customizations.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use super::{customization, interpretation};
use crate::{
    InterpreterSource, Operation, Question,
    customization::{CustomizationState, Customizations, admit},
};

/// Values with the names and texts that customizations consist of.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(""),
        Just("*"),
        Just("Pod"),
        Just("v1"),
        Just("a"),
        Just(".status.phase"),
        Just("..a[?(@.b==1)]"),
        Just("["),
        Just("Ready"),
        Just("Equals"),
        Just("In"),
        Just("Cluster"),
        Just("Chain"),
        Just("return 1"),
    ];
    let name = prop_oneof![
        Just("apiVersion"),
        Just("kind"),
        Just("metadata"),
        Just("name"),
        Just("spec"),
        Just("target"),
        Just("targets"),
        Just("kinds"),
        Just("mode"),
        Just("labelSelector"),
        Just("customizations"),
        Just("retention"),
        Just("fields"),
        Just("luaScript"),
        Just("replicaResource"),
        Just("replicasPath"),
        Just("healthInterpretation"),
        Just("condition"),
        Just("type"),
        Just("all"),
        Just("path"),
        Just("operator"),
        Just("value"),
        Just("values"),
        Just("dependencyInterpretation"),
        Just("references"),
        Just("namePath"),
        Just("podTemplatePath"),
        Just("status"),
    ];
    let scalar = prop_oneof![
        1 => Just(json!(null)),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        4 => text.prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 64, 6, move |inner| {
        let fields = vec((name.clone().prop_map(str::to_owned), inner.clone()), 0..6);
        prop_oneof![
            1 => vec(inner, 0..4).prop_map(Value::from),
            3 => fields.prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

/// Customizations with arbitrary values in some fields.
fn objects() -> impl Strategy<Value = Value> {
    let rules = || {
        let field = (0..Operation::ALL.len()).prop_map(|index| {
            crate::customization::CustomizationRules::field(Operation::ALL[index]).to_owned()
        });
        let fields = vec((field, values()), 0..3);
        prop_oneof![
            1 => values(),
            3 => fields.prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    };
    prop_oneof![
        values(),
        rules().prop_map(|rules| customization("a", "v1", "Pod", rules)),
        ("[ab]", values(), rules())
            .prop_map(|(name, targets, rules)| interpretation(&name, targets, "Replace", rules)),
        ("[ab]", rules()).prop_map(|(name, rules)| interpretation(
            &name,
            json!([{"apiVersion": "*", "kind": "*"}]),
            "Chain",
            rules
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_customization_is_used_or_reported(list in vec(objects(), 1..4), mut asked in values()) {
        if let Some(fields) = asked.as_object_mut() {
            fields.insert("apiVersion".into(), "v1".into());
            fields.insert("kind".into(), "Pod".into());
        }
        for new in &list {
            if let Err(problems) = admit(new, list.last(), &list) {
                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|problem| !problem.message.is_empty() && !problem.path.is_empty()));
            }
        }
        let customizations = Customizations::default();
        let states = customizations.replace(&list);
        for (state, object) in states.iter().zip(&list) {
            match state {
                CustomizationState::Used => {}
                CustomizationState::Unusable(problems) => prop_assert!(!problems.is_empty(), "{object}"),
                CustomizationState::Kept(_) => prop_assert!(false, "no interpreter without a customization"),
            }
        }
        for question in [
            Question::Retain { desired: &asked, observed: &list[0] },
            Question::Replica { object: &asked },
            Question::ReviseReplica { object: &asked, replicas: 3 },
            Question::Status { object: &asked },
            Question::Health { object: &asked },
            Question::Dependency { object: &asked },
        ] {
            for interpreter in customizations.interpreters(question.operation(), &asked) {
                let mut answer = interpreter.interpret(question);
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                prop_assert!(answer.as_mut().poll(&mut context).is_ready());
            }
        }
    }
}
