//! A deserializer that accepts what Go's `encoding/json` accepts for a struct.
//!
//! Field names match case-insensitively, the last of duplicate fields wins, null leaves a field unset and is
//! the zero value in a list or a map, and unknown fields are ignored.

use serde::{
    de::{
        Deserializer, Error, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

/// A value to deserialize with Go's rules.
pub(super) struct GoValue(pub(super) Value);

/// The zero value that null is read as, for each type.
macro_rules! zeros {
    ($($method:ident: $visit:ident($zero:expr)),+ $(,)?) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.0 {
                Value::Null => visitor.$visit($zero),
                _ => self.deserialize_any(visitor),
            }
        }
    )+ };
}

impl<'de> Deserializer<'de> for GoValue {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Array(items) => visit_items(items, visitor),
            Value::Object(fields) => {
                let mut fields =
                    MapDeserializer::new(fields.into_iter().map(|(name, value)| (name, Self(value))));
                let read = visitor.visit_map(&mut fields)?;
                fields.end()?;
                Ok(read)
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let object = match self.0 {
            Value::Object(object) => object,
            Value::Null => Map::new(),
            other => return Err(Self::Error::invalid_type(unexpected(&other), &visitor)),
        };
        visitor.visit_map(MapDeserializer::new(known_fields(object, fields).into_iter()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    zeros! {
        deserialize_bool: visit_bool(false),
        deserialize_i8: visit_i64(0),
        deserialize_i16: visit_i64(0),
        deserialize_i32: visit_i64(0),
        deserialize_i64: visit_i64(0),
        deserialize_u8: visit_u64(0),
        deserialize_u16: visit_u64(0),
        deserialize_u32: visit_u64(0),
        deserialize_u64: visit_u64(0),
        deserialize_f32: visit_f64(0.0),
        deserialize_f64: visit_f64(0.0),
        deserialize_str: visit_str(""),
        deserialize_string: visit_str(""),
        deserialize_seq: visit_seq(SeqDeserializer::new(std::iter::empty::<Self>())),
        deserialize_map: visit_map(MapDeserializer::new(std::iter::empty::<(&str, Self)>())),
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, serde_json::Error> for GoValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn visit_items<'de, V: Visitor<'de>>(items: Vec<Value>, visitor: V) -> Result<V::Value, serde_json::Error> {
    let mut items = SeqDeserializer::new(items.into_iter().map(GoValue));
    let read = visitor.visit_seq(&mut items)?;
    items.end()?;
    Ok(read)
}

/// Returns the fields that the struct has, each once.
fn known_fields(object: Map<String, Value>, fields: &'static [&'static str]) -> Vec<(&'static str, GoValue)> {
    let mut known: Vec<(&'static str, GoValue)> = Vec::with_capacity(fields.len());
    for (name, value) in object {
        let field = fields
            .iter()
            .find(|field| **field == name)
            .or_else(|| fields.iter().find(|field| field.eq_ignore_ascii_case(&name)));
        let Some(field) = field.filter(|_| !value.is_null()) else {
            continue;
        };
        match known.iter_mut().find(|(known, _)| known == field) {
            Some((_, earlier)) => *earlier = GoValue(value),
            None => known.push((field, GoValue(value))),
        }
    }
    known
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}
