//! Formats literals and labels of programs.

use std::fmt::Write;

use serde_json::Value;

/// Formats a text as a string literal, which is also valid as a label.
///
/// ```
/// assert_eq!(policy_cue::quote("say \"hi\"\n"), r#""say \"hi\"\n""#);
/// ```
#[must_use]
pub fn quote(text: &str) -> String {
    quote_escaping(text, |_| false)
}

/// Like [`quote`], but also escapes the given characters, for example invisible ones.
///
/// ```
/// assert_eq!(policy_cue::quote_escaping("a\u{ad}b", |it| it == '\u{ad}'), r#""a\u00adb""#);
/// ```
#[must_use]
pub fn quote_escaping(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Control characters, line separators, and the byte order mark.
            _ if character.is_control()
                || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}')
                || is_escaped(character) =>
            {
                // Writing to a string cannot fail.
                let _ = match u32::from(character) {
                    code @ ..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    code => write!(quoted, "\\U{code:08x}"),
                };
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats JSON as a literal on one line.
///
/// ```
/// use serde_json::json;
///
/// assert_eq!(policy_cue::literal(&json!({"a": [1, null]})), r#"{"a":[1,null]}"#);
/// ```
#[must_use]
pub fn literal(value: &Value) -> String {
    let mut written = String::new();
    write_literal(&mut written, value);
    written
}

fn write_literal(written: &mut String, value: &Value) {
    match value {
        Value::Null => written.push_str("null"),
        Value::Bool(value) => written.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(written, "{number}");
        }
        Value::String(text) => written.push_str(&quote(text)),
        Value::Array(items) => {
            written.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    written.push(',');
                }
                write_literal(written, item);
            }
            written.push(']');
        }
        Value::Object(object) => {
            written.push('{');
            for (index, (label, value)) in object.iter().enumerate() {
                if index > 0 {
                    written.push(',');
                }
                written.push_str(&quote(label));
                written.push(':');
                write_literal(written, value);
            }
            written.push('}');
        }
    }
}
