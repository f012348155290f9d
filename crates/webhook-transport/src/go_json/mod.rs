//! JSON with the leniency of Go's `encoding/json`: what a server written in Go accepts must not be rejected
//! here.

mod deserializer;

use std::borrow::Cow;

use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};
use thiserror::Error;

use self::deserializer::GoValue;

/// Why JSON cannot be decoded.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The input is not JSON.
    #[error("is not JSON: {0}")]
    Syntax(
        /// The parse error, with its position.
        serde_json::Error,
    ),
    /// A value has the wrong type.
    #[error("{path}: {problem}")]
    Field {
        /// The path of the field.
        path: String,
        /// The type error.
        problem: serde_json::Error,
    },
}

/// Decodes the first JSON value in `bytes` as `T`.
///
/// # Errors
///
/// When `bytes` do not start with a JSON value, or a field has the wrong type.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    read_value(first_value(bytes).map_err(DecodeError::Syntax)?)
}

/// Decodes `value` as `T`.
///
/// # Errors
///
/// When a field has the wrong type.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(GoValue(value)).map_err(|error| DecodeError::Field {
        path: error.path().to_string(),
        problem: error.into_inner(),
    })
}

/// Parses the first JSON value in `bytes`; like Go's decoder, it ignores what follows.
///
/// # Errors
///
/// When `bytes` do not start with a JSON value, or may contain more than a million values.
pub fn first_value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    check_count(bytes)?;
    let text = lossy_text(bytes);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter();
    match values.next() {
        Some(value) => value,
        None => serde_json::from_str(&text),
    }
}

/// Parses `bytes` as exactly one JSON value.
///
/// # Errors
///
/// When `bytes` are anything else, or may contain more than a million values.
pub fn whole_value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    check_count(bytes)?;
    serde_json::from_str(&lossy_text(bytes))
}

/// Replaces invalid UTF-8, as Go does: a message may be in another encoding.
fn lossy_text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The maximum number of values: each takes many times the memory of the two bytes that it may be written
/// with.
const MAX_VALUES: usize = 1 << 20;

/// Rejects input that may contain too many values. Every value except the first follows a comma or an opening
/// bracket.
fn check_count(bytes: &[u8]) -> Result<(), serde_json::Error> {
    if bytes.len() <= MAX_VALUES {
        return Ok(());
    }
    let mut count = 1;
    let mut is_text = false;
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => drop(bytes.next()),
            b',' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    match count {
        ..=MAX_VALUES => Ok(()),
        _ => Err(serde_json::Error::custom(format_args!(
            "more than {MAX_VALUES} values"
        ))),
    }
}

/// Looks up a field by its case-insensitive name. The last of duplicates wins, and null counts as absent.
pub fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut fields = object.iter().rev();
    let found = fields.find(|(field, value)| field.eq_ignore_ascii_case(name) && !value.is_null());
    found.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Sample {
        status: String,
        retry_after_seconds: i32,
        inner: Inner,
        many: Vec<Inner>,
        maybe: Option<Inner>,
        anything: Value,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        name: String,
    }

    #[test]
    fn text_after_the_first_value_is_ignored() {
        assert_eq!(first_value(b" {\"a\": 1}\n{\"b").unwrap(), json!({"a": 1}));
        for wrong in ["", " ", "{", "<html>"] {
            assert!(first_value(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        let written = b"{\"status\": \"caf\xe9\"}";
        assert_eq!(read::<Sample>(written).unwrap().status, "caf\u{fffd}");
        assert_eq!(whole_value(written).unwrap(), json!({"status": "caf\u{fffd}"}));
        for wrong in [&b"\xef\xbb\xbf{}"[..], b"\xff\xfe{\0}\0", b"{\xe9: 1}"] {
            assert!(
                first_value(wrong).is_err() && whole_value(wrong).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn a_struct_is_decoded_as_in_go() {
        let written = br#"{
            "Status": "a", "RETRYAFTERSECONDS": 5, "inner": {"NAME": "x", "other": 1}, "many": [{"Name": "y"}, null],
            "maybe": {"name": "z"}, "anything": {"Name": null, "list": [1, {"B": 2}]}, "unknown": 1, "status": "b"
        } trailing"#;
        let inner = |name: &str| Inner { name: name.into() };
        assert_eq!(
            read::<Sample>(written).unwrap(),
            Sample {
                status: "b".into(),
                retry_after_seconds: 5,
                inner: inner("x"),
                many: vec![inner("y"), inner("")],
                maybe: Some(inner("z")),
                anything: json!({"Name": null, "list": [1, {"B": 2}]}),
            }
        );
        let nothing = br#"{"status": null, "inner": null, "many": null, "maybe": null}"#;
        assert_eq!(read::<Sample>(nothing).unwrap(), Sample::default());
    }

    #[test]
    fn null_in_a_list_or_a_map_is_the_zero_value() {
        let texts: BTreeMap<String, String> = read(br#"{"a": null, "A": "b"}"#).unwrap();
        assert_eq!(
            texts,
            BTreeMap::from([("A".into(), "b".into()), ("a".into(), String::new())])
        );
        assert_eq!(read::<Vec<i32>>(b"[null, 1]").unwrap(), [0, 1]);
        assert_eq!(read::<Vec<bool>>(b"[null, true]").unwrap(), [false, true]);
        assert_eq!(read::<Vec<Vec<u8>>>(b"[null, [1]]").unwrap(), [vec![], vec![1]]);
        assert_eq!(
            read::<Vec<Option<f64>>>(b"[null, 1.5]").unwrap(),
            [None, Some(1.5)]
        );
        assert_eq!(read::<Vec<Value>>(b"[null]").unwrap(), [Value::Null]);
        assert!(read::<Vec<i32>>(br#"[""]"#).is_err());
    }

    #[test]
    fn errors_name_the_field() {
        let message = |text: &str| read::<Sample>(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            message(r#"{"many": [{"name": "a"}, {"Name": 1}]}"#),
            "many[1].name: invalid type: integer `1`, expected a string"
        );
        assert_eq!(
            message(r#"{"inner": []}"#),
            "inner: invalid type: sequence, expected struct Inner"
        );
        assert!(message("<html>").starts_with("is not JSON: "));
    }

    #[test]
    fn too_many_values_are_rejected() {
        let list = |inner: &str, count: usize| format!("[{}{inner}]", format!("{inner},").repeat(count - 1));
        for fine in [
            list("{}", (1 << 19) - 1),
            format!("\"{}\\\",\"", ",".repeat(2 << 20)),
        ] {
            assert!(first_value(fine.as_bytes()).is_ok() && whole_value(fine.as_bytes()).is_ok());
        }
        for wrong in [list("{}", 1 << 20), list("1", 2 << 20)] {
            assert_eq!(
                first_value(wrong.as_bytes()).unwrap_err().to_string(),
                "more than 1048576 values"
            );
            whole_value(wrong.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn field_names_are_case_insensitive() {
        let object = json!({"Status": 1, "STATUS": 2, "name": 3, "Name": 4, "NAME": null, "none": null});
        let object = object.as_object().unwrap();
        assert_eq!(field(object, "status"), Some(&json!(2)));
        assert_eq!(
            field(object, "name"),
            Some(&json!(4)),
            "same rules as for a struct"
        );
        assert_eq!(field(object, "none"), None);
        assert_eq!(field(object, "other"), None);
    }
}
