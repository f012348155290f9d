//! The JSON fields of a request.

use serde::{
    Serialize, Serializer,
    ser::{Error as _, Impossible, SerializeMap, SerializeStruct},
};
use serde_json::{Error, Map, Value};

/// The fields of a request as JSON text, ready to be appended to other fields.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RequestFields {
    /// All fields except `kind`, `apiVersion` and `settings`, each after a comma: `,"cluster":{}`.
    pub(super) text: Vec<u8>,
    pub(super) settings: Map<String, Value>,
}

/// Serializes the fields of an object separately.
struct FieldWriter {
    fields: RequestFields,
    /// The pending key of a map.
    key: Option<String>,
}

impl RequestFields {
    /// Serializes the fields of `request`.
    ///
    /// # Errors
    ///
    /// When the request is not an object, or cannot be written as JSON.
    pub(super) fn from_request(request: &impl Serialize) -> Result<Self, Error> {
        request.serialize(FieldWriter {
            fields: Self::default(),
            key: None,
        })
    }
}

impl FieldWriter {
    fn write<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        match key {
            "kind" | "apiVersion" => {}
            "settings" => match serde_json::to_value(value)? {
                Value::Object(settings) => self.fields.settings = settings,
                Value::Null => {}
                _ => return Err(Error::custom("settings: is not an object")),
            },
            key => {
                let text = &mut self.fields.text;
                text.push(b',');
                serde_json::to_writer(&mut *text, key)?;
                text.push(b':');
                serde_json::to_writer(text, value)?;
            }
        }
        Ok(())
    }
}

/// Stands in for the compound serializers of values that are not objects.
macro_rules! refused {
    ($($method:ident($($type:ty),*);)*) => {
        $(fn $method(self $(, _: $type)*) -> Result<RequestFields, Error> {
            Err(not_an_object())
        })*
    };
}

impl Serializer for FieldWriter {
    type Ok = RequestFields;
    type Error = Error;
    type SerializeSeq = Impossible<RequestFields, Error>;
    type SerializeTuple = Impossible<RequestFields, Error>;
    type SerializeTupleStruct = Impossible<RequestFields, Error>;
    type SerializeTupleVariant = Impossible<RequestFields, Error>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<RequestFields, Error>;

    refused! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<RequestFields, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<RequestFields, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<RequestFields, Error> {
        Err(not_an_object())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        Err(not_an_object())
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        Err(not_an_object())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        Err(not_an_object())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(not_an_object())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(not_an_object())
    }
}

impl SerializeStruct for FieldWriter {
    type Ok = RequestFields;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.write(key, value)
    }

    fn end(self) -> Result<RequestFields, Error> {
        Ok(self.fields)
    }
}

impl SerializeMap for FieldWriter {
    type Ok = RequestFields;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        match serde_json::to_value(key)? {
            Value::String(key) => {
                self.key = Some(key);
                Ok(())
            }
            _ => Err(Error::custom("a field's name is not a string")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take();
        let key = key.ok_or_else(|| Error::custom("a field has no name"))?;
        self.write(&key, value)
    }

    fn end(self) -> Result<RequestFields, Error> {
        Ok(self.fields)
    }
}

fn not_an_object() -> Error {
    Error::custom("the request is not an object")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Request {
        api_version: &'static str,
        settings: BTreeMap<&'static str, &'static str>,
        first: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        #[serde(flatten)]
        others: BTreeMap<String, Value>,
    }

    fn serialize(request: &impl Serialize) -> (Value, Map<String, Value>) {
        let RequestFields { text, settings } = RequestFields::from_request(request).unwrap();
        let whole = [&b"{\"first\":0"[..], &text, b"}"].concat();
        (serde_json::from_slice(&whole).unwrap(), settings)
    }

    #[test]
    fn fields_of_structs_and_json_are_serialized() {
        let others = json!({"a\"b": {"c": [1]}, "kind": "x"});
        let request = Request {
            api_version: "v1",
            settings: BTreeMap::from([("key", "value")]),
            first: None,
            left_out: None,
            others: serde_json::from_value(others).unwrap(),
        };
        let (fields, settings) = serialize(&Some(&request));
        assert_eq!(fields, json!({"first": null, "a\"b": {"c": [1]}}));
        assert_eq!(Value::Object(settings), json!({"key": "value"}));
        assert_eq!(serialize(&serde_json::to_value(&request).unwrap()).0, fields);
        assert_eq!(
            serialize(&json!({"settings": null})),
            (json!({"first": 0}), Map::new())
        );
    }

    #[test]
    fn only_objects_are_requests() {
        for request in [
            json!(null),
            json!(true),
            json!(1),
            json!(-1),
            json!(1.5),
            json!("x"),
            json!([]),
            json!([{}]),
        ] {
            let error = RequestFields::from_request(&request).unwrap_err();
            assert_eq!(error.to_string(), "the request is not an object", "{request}");
        }
        assert!(RequestFields::from_request(&json!({"settings": [1]})).is_err());
        assert!(RequestFields::from_request(&BTreeMap::from([(1, 2)])).is_err());
    }

    proptest! {
        #[test]
        fn fields_are_serialized_as_by_serde_json(fields in prop::collection::btree_map("[a-z\"\\\\\u{e9}]{1,4}", any::<i64>(), 0..5)) {
            let mut expected = serde_json::to_value(&fields).unwrap();
            expected["first"] = expected.get("first").cloned().unwrap_or(json!(0));
            prop_assert_eq!(serialize(&fields).0, expected);
        }
    }
}
