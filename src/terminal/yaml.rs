//! YAML output that every YAML reader understands.

use anyhow::Context;
use serde::Serialize;

/// Returns one document with a final line break. Strings that YAML 1.1 or 1.2 would read as another type are
/// quoted.
///
/// # Errors
///
/// When the object cannot be written as YAML.
pub(crate) fn document(object: &impl Serialize) -> anyhow::Result<String> {
    // Never folded, so that every line of the input stays one line.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(object, options).context("cannot write YAML")?;
    Ok(if text.ends_with('\n') {
        text
    } else {
        format!("{text}\n")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn assert_survives(text: &str) {
        let object = json!({"plain": text, "list": [text, [text]], "keys": {text: {text: null}}});
        let written = document(&object).unwrap();
        let read: Value = serde_saphyr::from_str(&written).unwrap();
        assert_eq!(read, object, "{written}");
    }

    #[test]
    fn ambiguous_strings_are_quoted() {
        for text in [
            "",
            " ",
            "~",
            "null",
            "Null",
            "true",
            "no",
            "on",
            "y",
            "1",
            "0x1f",
            "0o7",
            "1e3",
            "1_000",
            ".5",
            "-.inf",
            "1:30",
            "2026-11-21",
            "=",
            "<<",
            "- a",
            "? a",
            "a: b",
            "a #b",
            "#a",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "'",
            "\"",
            "a\n",
            "a\n\n",
            "\na",
            " a\n  b",
            "a\tb",
            "a\r\nb",
            "---",
            "...",
            "|",
            ">",
            "\u{feff}a",
            "\u{85}",
            "\u{2028}",
            "\u{7f}",
            "\0",
        ] {
            assert_survives(text);
            let written = document(&json!({"a": text})).unwrap();
            assert!(written.starts_with("a: "), "{written}");
        }
    }

    #[test]
    fn a_long_line_is_one_line() {
        let long = "word ".repeat(60) + "end";
        assert_eq!(document(&json!({"a": long})).unwrap(), format!("a: {long}\n"));
    }

    proptest! {
        #[test]
        fn any_text_survives(text in "(\\PC|[\\n\\t :#'\"|>{}-]){0,40}") {
            assert_survives(&text);
        }
    }
}
