//! Templates with any text.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::api::OverrideRuleTemplate;

use super::{override_program, pod, refused_with, run, validation_program};
use crate::render::render_override;

/// Text of any characters, with many that have a meaning in CUE.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(vec![
                    '"', '\\', '(', ')', '{', '}', '\n', '\r', '#', '\'', '_', '|', '\u{0}', '\u{2028}',
                    '\u{feff}', '/', '~', '.'
                ]),
                any::<char>(),
            ],
            0..12
        )
        .prop_map(|characters| characters.into_iter().collect()),
    ]
}

proptest! {
    #[test]
    fn any_message_is_reported_as_reason(message in text()) {
        prop_assume!(!message.is_empty());
        let condition = json!({"cond": "Exist", "message": message, "dataRef": {"from": "current", "path": "/kind"}});
        let reason = refused_with(&condition, &json!({"object": {"kind": "Odd"}}));
        prop_assert_eq!(reason, Some(message));
    }

    #[test]
    fn any_value_equals_only_itself(value in text(), other in text()) {
        let dataref = json!({"from": "current", "path": "/spec/x"});
        let condition = json!({"cond": "Equal", "message": "no", "dataRef": dataref, "value": {"string": value}});
        let refused = |x: &str| refused_with(&condition, &json!({"object": {"spec": {"x": x}}})).is_some();
        prop_assert!(refused(&value));
        prop_assert_eq!(refused(&other), value == other);
    }

    #[test]
    fn any_key_is_found_by_its_pointer(key in text()) {
        prop_assume!(!key.is_empty());
        let path = format!("/spec/{}", key.replace('~', "~0").replace('/', "~1"));
        let condition = json!({"cond": "Exist", "message": "no", "dataRef": {"from": "current", "path": path}});
        let is_index = key.bytes().all(|byte| byte.is_ascii_digit());
        let object = json!({"spec": { &key: "x" }});
        prop_assert_eq!(refused_with(&condition, &json!({"object": object})).is_some(), !is_index || key.len() > 9 || (key.len() > 1 && key.starts_with('0')));
    }

    #[test]
    fn any_term_is_added_unchanged(key in text(), values in proptest::collection::vec(text(), 1..4)) {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let requirement = json!({"key": format!("k{key}"), "operator": "In", "values": values});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]});
        let affinity = json!({"nodeAffinity": { required: terms }});
        let template = json!({"type": "affinity", "operation": "add", "affinity": affinity});
        let program = override_program(&template);
        let patches = run(&program, &json!({"object": pod(&json!({}))}), "patches").unwrap();
        prop_assert_eq!(&patches[0]["value"], &affinity);
    }

    /// Invalid keys never get into a program, and valid ones never break it.
    #[test]
    fn any_annotation_is_written_or_refused(key in text(), value in text()) {
        let template: Value = json!({"type": "annotations", "operation": "add", "path": key, "value": {"string": value}});
        let template: OverrideRuleTemplate = serde_json::from_value(template).unwrap();
        if let Ok(program) = render_override(&template) {
            let patches = run(&program, &json!({"object": {"metadata": {"annotations": {}}}}), "patches").unwrap();
            prop_assert_eq!(&patches[0]["value"], &value);
        }
    }

    #[test]
    fn the_same_template_gives_the_same_program(message in text()) {
        prop_assume!(!message.is_empty());
        let condition = json!({"cond": "NotExist", "message": message, "dataRef": {"from": "owner"}});
        prop_assert_eq!(validation_program(&condition), validation_program(&condition));
    }
}
