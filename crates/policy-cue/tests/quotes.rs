//! Quoted text and JSON read back unchanged.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use policy_cue::{CueBudget, CueInputs, CueProgram, literal, quote, quote_escaping};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(source: &str) -> Value {
    let program = CueProgram::compile(source).unwrap();
    let output = program.evaluate(&CueInputs::new(), "output", &CueBudget::default());
    output.unwrap().unwrap()
}

fn any_json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Whole numbers become integers.
        (-1e9..1e9).prop_map(|float: f64| Value::from(float.trunc() + 0.5)),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn quoted_texts_read_back(text in any::<String>()) {
        prop_assert_eq!(read(&format!("output: {}", quote(&text))), Value::from(text));
    }

    #[test]
    fn fully_escaped_texts_read_back(text in any::<String>()) {
        let quoted = quote_escaping(&text, |character| !character.is_ascii());
        prop_assert!(quoted.is_ascii());
        prop_assert_eq!(read(&format!("output: {quoted}")), Value::from(text));
    }

    #[test]
    fn labels_read_back(label in any::<String>()) {
        let label_source = quote(&label);
        let source = format!("a: {{{label_source}: 1}}\noutput: [a, a.{label_source}, a[{label_source}]]");
        prop_assert_eq!(read(&source), json!([{ label: 1 }, 1, 1]));
    }

    #[test]
    fn quoted_texts_never_end_early(text in ".*[\"\\\\(){}#\n].*") {
        let source = format!("output: [{}, 1]", quote(&text));
        prop_assert_eq!(read(&source), json!([text, 1]));
    }

    #[test]
    fn json_reads_back(value in any_json()) {
        prop_assert_eq!(read(&format!("output: {}", literal(&value))), value);
    }

    #[test]
    fn inputs_equal_literals_in_the_program(value in any_json()) {
        let program = CueProgram::compile("input: _\noutput: input").unwrap();
        let inputs = CueInputs::new().with_input("input", &value);
        let output = program.evaluate(&inputs, "output", &CueBudget::default()).unwrap();
        prop_assert_eq!(output, Some(read(&format!("input: {}\noutput: input", literal(&value)))));
    }

    #[test]
    fn compiling_any_text_never_panics(source in "[a-c0-9:{}\\[\\]().,\"\\\\|&*<>=!~ \n#_@?+/-]{0,80}") {
        if let Ok(program) = CueProgram::compile(&source) {
            let _ = program.evaluate(&CueInputs::new(), "a", &CueBudget::default());
        }
    }
}

#[test]
fn control_characters_are_escaped() {
    assert_eq!(
        quote("\u{0}\u{7f}\u{2028}\u{feff}é😀"),
        "\"\\u0000\\u007f\\u2028\\ufeffé😀\""
    );
}
