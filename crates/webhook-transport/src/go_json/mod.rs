//! JSON as Go reads it: what servers written in Go take for good is not to be refused here.

mod deserializer;

use std::borrow::Cow;

use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};
use thiserror::Error;

use self::deserializer::GoValue;

/// Why JSON cannot be read as what it should be.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// It is not JSON.
    #[error("is not JSON: {0}")]
    Syntax(
        /// What is wrong, and where.
        serde_json::Error,
    ),
    /// It is not of the type.
    #[error("{path}: {problem}")]
    Field {
        /// The field, from the outermost.
        path: String,
        /// What is wrong with it.
        problem: serde_json::Error,
    },
}

/// Reads the first JSON value in `bytes` as `T`.
///
/// # Errors
///
/// When they do not begin with one, or it has a field of another type.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    read_value(first_value(bytes).map_err(DecodeError::Syntax)?)
}

/// Reads `value` as `T`.
///
/// # Errors
///
/// When it has a field of another type.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(GoValue(value)).map_err(|error| DecodeError::Field {
        path: error.path().to_string(),
        problem: error.into_inner(),
    })
}

/// The first JSON value in `bytes`; Go's decoder does not look at what follows it.
///
/// # Errors
///
/// When they do not begin with one, or may hold more than a million values.
pub fn first_value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    check_count(bytes)?;
    let text = text(bytes);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter();
    match values.next() {
        Some(value) => value,
        None => serde_json::from_str(&text),
    }
}

/// The one JSON value in `bytes`.
///
/// # Errors
///
/// When they are anything else, or may hold more than a million values.
pub fn whole_value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    check_count(bytes)?;
    serde_json::from_str(&text(bytes))
}

/// What is not UTF-8 is replaced, as Go does it: somebody's message may be in another encoding.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The most values that are read: each takes many times the memory of the two bytes that it may be written with.
const MOST_VALUES: usize = 1 << 20;

/// Whether there cannot be more values than are read: each but the first stands behind a comma or within a bracket.
fn check_count(bytes: &[u8]) -> Result<(), serde_json::Error> {
    if bytes.len() <= MOST_VALUES {
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
        ..=MOST_VALUES => Ok(()),
        _ => Err(serde_json::Error::custom(format_args!(
            "more than {MOST_VALUES} values"
        ))),
    }
}

/// A field by its name, in whatever case it is written. The last of several counts, and null is nothing.
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
    fn what_follows_the_first_value_is_not_read() {
        assert_eq!(first_value(b" {\"a\": 1}\n{\"b").unwrap(), json!({"a": 1}));
        for wrong in ["", " ", "{", "<html>"] {
            assert!(first_value(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_utf_8_is_replaced() {
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
    fn a_struct_is_read_as_go_reads_it() {
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
    fn null_in_a_list_or_a_map_is_nothing() {
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
    fn what_is_wrong_is_named_with_its_field() {
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
    fn what_would_take_too_much_memory_is_not_read() {
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
    fn the_case_of_names_does_not_matter() {
        let object = json!({"Status": 1, "STATUS": 2, "name": 3, "Name": 4, "NAME": null, "none": null});
        let object = object.as_object().unwrap();
        assert_eq!(field(object, "status"), Some(&json!(2)));
        assert_eq!(field(object, "name"), Some(&json!(4)), "as a struct is read");
        assert_eq!(field(object, "none"), None);
        assert_eq!(field(object, "other"), None);
    }
}
