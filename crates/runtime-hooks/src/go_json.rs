//! JSON as Go reads it: what servers written in Go take for good is not to be refused here.

use serde_json::{Map, Value};

/// The first JSON value in `bytes`; Go's decoder does not look at what follows it.
///
/// # Errors
///
/// When they do not begin with one.
pub(crate) fn first_value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter();
    match values.next() {
        Some(value) => value,
        None => serde_json::from_slice(bytes),
    }
}

/// A field by its name, in whatever case it is written; the name as it should be goes first. null is nothing.
pub(crate) fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let found = object.get(name).or_else(|| {
        let mut fields = object.iter().rev();
        fields.find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value))
    });
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_follows_the_first_value_is_not_read() {
        assert_eq!(first_value(b" {\"a\": 1}\n{\"b").unwrap(), json!({"a": 1}));
        for wrong in ["", " ", "{", "<html>"] {
            assert!(first_value(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_case_of_names_does_not_matter() {
        let object = json!({"Status": 1, "STATUS": 2, "name": 3, "Name": 4, "none": null});
        let object = object.as_object().unwrap();
        assert_eq!(field(object, "status"), Some(&json!(2)));
        assert_eq!(field(object, "name"), Some(&json!(3)));
        assert_eq!(field(object, "none"), None);
        assert_eq!(field(object, "other"), None);
    }
}
