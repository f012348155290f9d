//! Reads the parts of an AdmissionReview that the guard needs, and skips the rest while parsing. Any client
//! that reaches the port can send a body, and a parsed tree needs forty times its memory.

use std::{cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use windlass_object::names;

/// Which part of a value is kept. A value of an unexpected type is kept empty.
enum Part {
    /// The whole value.
    Whole,
    /// These fields of an object.
    Fields(&'static [(&'static str, Self)]),
    /// This part of each list item.
    Items(&'static Self),
}

/// Deserializes the kept part of one value.
struct Reader<'a> {
    part: &'a Part,
    /// The number of values that may still be kept.
    left: &'a Cell<usize>,
}

/// The kept part of a CustomResourceDefinition or a BundleDeployment.
const OBJECT: Part = Part::Fields(&[
    (
        "metadata",
        Part::Fields(&[
            ("name", Part::Whole),
            ("deletionTimestamp", Part::Whole),
            ("labels", Part::Fields(&[(names::BUNDLE_DEPLOYMENT, Part::Whole)])),
        ]),
    ),
    (
        "spec",
        Part::Fields(&[
            ("conversion", Part::Whole),
            ("deletionPolicy", Part::Whole),
            ("versions", Part::Items(&Part::Fields(&[("name", Part::Whole)]))),
        ]),
    ),
    ("status", Part::Fields(&[("storedVersions", Part::Whole)])),
]);

const REVIEW: Part = Part::Fields(&[
    ("apiVersion", Part::Whole),
    ("kind", Part::Whole),
    (
        "request",
        Part::Fields(&[
            ("uid", Part::Whole),
            ("operation", Part::Whole),
            (
                "resource",
                Part::Fields(&[("group", Part::Whole), ("resource", Part::Whole)]),
            ),
            ("userInfo", Part::Fields(&[("username", Part::Whole)])),
            ("oldObject", OBJECT),
            ("object", OBJECT),
        ]),
    ),
]);

/// The most values that are kept: a thousand times those of two CustomResourceDefinitions.
const MOST_VALUES: usize = 1 << 14;

/// Parses the kept part of the AdmissionReview in a body.
///
/// # Errors
///
/// When the body is not JSON, or has too many kept values.
pub(super) fn read(body: &[u8]) -> serde_json::Result<Value> {
    let left = Cell::new(MOST_VALUES);
    let mut body = serde_json::Deserializer::from_slice(body);
    let review = Reader {
        part: &REVIEW,
        left: &left,
    };
    let review = review.deserialize(&mut body)?;
    body.end()?;
    Ok(review)
}

impl<'a> Reader<'a> {
    fn with_part(&self, part: &'a Part) -> Self {
        Self {
            part,
            left: self.left,
        }
    }

    fn keep<E: Error>(&self, value: impl Into<Value>) -> Result<Value, E> {
        let left = self.left.get().checked_sub(1);
        self.left
            .set(left.ok_or_else(|| E::custom(format_args!("more than {MOST_VALUES} values")))?);
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.keep(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let part = match self.part {
            Part::Whole => self.part,
            Part::Items(part) => part,
            Part::Fields(_) => {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return self.keep(Vec::<Value>::new());
            }
        };
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.with_part(part))? {
            items.push(item);
        }
        self.keep(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            let part = match self.part {
                Part::Whole => Some(self.part),
                Part::Fields(parts) => parts
                    .iter()
                    .find(|(field, _)| *field == name)
                    .map(|(_, part)| part),
                Part::Items(_) => None,
            };
            match part {
                Some(part) => {
                    let value = object.next_value_seed(self.with_part(part))?;
                    fields.insert(name, value);
                }
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.keep(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn excerpt(review: &Value) -> Value {
        read(review.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn unneeded_fields_are_skipped() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"other": "b"}, "managedFields": [{"fieldsV1": {"f:spec": {}}}]},
            "spec": {"group": "c", "conversion": {"strategy": "None", "unknown": [1.5, null]}, "versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}},
                "no version",
            ]},
            "status": "no status",
        });
        let kept = json!({
            "metadata": {"name": "a", "labels": {}},
            "spec": {
                "conversion": {"strategy": "None", "unknown": [1.5, null]},
                "versions": [{"name": "v1"}, "no version"],
            },
            "status": "no status",
        });
        let review = json!({
            "kind": "AdmissionReview", "request": {"uid": "1", "options": {}, "object": object, "oldObject": [object]},
        });
        assert_eq!(
            excerpt(&review),
            json!({"kind": "AdmissionReview", "request": {"uid": "1", "object": kept, "oldObject": []}})
        );
    }

    #[test]
    fn an_excerpt_fits_into_the_memory_of_its_body() {
        let many = vec![0; MOST_VALUES];
        for kept in [
            "/apiVersion",
            "/request/object/spec/conversion",
            "/request/object/spec/versions",
        ] {
            let mut review = json!({"request": {"object": {"spec": {}}}});
            let (parent, field) = kept.rsplit_once('/').unwrap();
            review.pointer_mut(parent).unwrap()[field] = json!(many);
            let refused = read(review.to_string().as_bytes()).unwrap_err().to_string();
            assert!(refused.contains("more than 16384 values"), "{kept}: {refused}");
        }
        let schema =
            json!({"request": {"object": {"spec": {"versions": [{"schema": many}], "other": many}}}});
        assert_eq!(
            excerpt(&schema),
            json!({"request": {"object": {"spec": {"versions": [{}]}}}})
        );
    }

    #[test]
    fn the_last_of_duplicate_fields_wins() {
        let twice = br#"{"kind": "a", "request": {"uid": "1"}, "kind": "b", "request": {"operation": "c"}}"#;
        assert_eq!(
            read(twice).unwrap(),
            serde_json::from_slice::<Value>(twice).unwrap()
        );
        assert!(read(b"{} {}").is_err());
    }
}
