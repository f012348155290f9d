//! Typed access to fields of objects.

use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_object::JsonPath;

/// A field has the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {expected}")]
pub struct FieldTypeError {
    /// The path, for example `.spec.replicas`.
    pub path: JsonPath,
    /// The expected type.
    pub expected: &'static str,
}

/// A value inside an object with its path. Null counts as absent.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    value: &'a Value,
    path: JsonPath,
}

impl<'a> Fields<'a> {
    /// Starts at the root of an object.
    pub(crate) fn new(object: &'a Value) -> Self {
        Self::at_path(JsonPath::root(), object)
    }

    /// Starts at a value with a path.
    pub(crate) fn at_path(path: JsonPath, value: &'a Value) -> Self {
        Self { value, path }
    }

    /// The path of the value.
    pub(crate) fn path(&self) -> &JsonPath {
        &self.path
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns the value at names separated by dots.
    pub(crate) fn at(&self, names: &str) -> Result<Option<Self>, FieldTypeError> {
        let mut part = self.clone();
        for name in names.split('.') {
            let Some(fields) = part.as_object()? else {
                return Ok(None);
            };
            let Some(value) = fields.get(name) else {
                return Ok(None);
            };
            let path = part.path.field(name);
            part = Self { value, path };
        }
        Ok((!part.value.is_null()).then_some(part))
    }

    /// Returns the integer at `names`; `None` if it is absent or null.
    pub(crate) fn integer(&self, names: &str) -> Result<Option<i64>, FieldTypeError> {
        self.decode(names, "an integer", |value| {
            // Lua and JavaScript turn integers into numbers such as 3.0.
            let float = || value.as_f64().filter(|float| float.fract() == 0.0);
            value.as_i64().or_else(|| format!("{:.0}", float()?).parse().ok())
        })
    }

    /// Returns the string at `names`; `None` if it is absent or null.
    pub(crate) fn text(&self, names: &str) -> Result<Option<&'a str>, FieldTypeError> {
        self.decode(names, "a string", Value::as_str)
    }

    /// Returns the boolean at `names`; `None` if it is absent or null.
    pub(crate) fn boolean(&self, names: &str) -> Result<Option<bool>, FieldTypeError> {
        self.decode(names, "a boolean", Value::as_bool)
    }

    /// Returns the timestamp at `names`; `None` if it is absent or null.
    pub(crate) fn timestamp(&self, names: &str) -> Result<Option<Timestamp>, FieldTypeError> {
        self.decode(names, "a timestamp", |value| value.as_str()?.parse().ok())
    }

    /// Returns the list at `names`; `None` if it is absent or null.
    pub(crate) fn list(&self, names: &str) -> Result<Option<&'a Vec<Value>>, FieldTypeError> {
        self.decode(names, "a list", Value::as_array)
    }

    /// Returns the object at `names`; `None` if it is absent or null.
    pub(crate) fn object(&self, names: &str) -> Result<Option<&'a Map<String, Value>>, FieldTypeError> {
        self.at(names)?.map_or(Ok(None), |field| field.as_object())
    }

    /// Returns the items of a list; none if the list is absent.
    pub(crate) fn items(&self, names: &str) -> Result<Vec<Self>, FieldTypeError> {
        let Some(list) = self.at(names)? else {
            return Ok(Vec::new());
        };
        let items = list.value.as_array().ok_or_else(|| list.is_not("a list"))?;
        let items = items.iter().enumerate();
        Ok(items
            .map(|(index, value)| Self::at_path(list.path.item(index), value))
            .collect())
    }

    /// Returns the condition of a type in the status.
    pub(crate) fn condition(&self, condition_type: &str) -> Result<Option<Self>, FieldTypeError> {
        self.condition_among("status.conditions", condition_type)
    }

    /// Reports whether the status has a condition of a type with status `True`.
    pub(crate) fn has_condition(&self, condition_type: &str) -> Result<bool, FieldTypeError> {
        self.has_true_condition_in("status.conditions", condition_type)
    }

    /// Reports whether a list has a condition of a type with status `True`.
    pub(crate) fn has_true_condition_in(
        &self,
        names: &str,
        condition_type: &str,
    ) -> Result<bool, FieldTypeError> {
        let condition = self.condition_among(names, condition_type)?;
        condition.map_or(Ok(false), |condition| {
            Ok(condition.text("status")? == Some("True"))
        })
    }

    fn condition_among(&self, names: &str, condition_type: &str) -> Result<Option<Self>, FieldTypeError> {
        for condition in self.items(names)? {
            if condition.text("type")? == Some(condition_type) {
                return Ok(Some(condition));
            }
        }
        Ok(None)
    }

    /// Creates an error for this value.
    pub(crate) fn is_not(&self, expected: &'static str) -> FieldTypeError {
        let path = self.path.clone();
        FieldTypeError { path, expected }
    }

    fn as_object(&self) -> Result<Option<&'a Map<String, Value>>, FieldTypeError> {
        match self.value {
            Value::Null => Ok(None),
            Value::Object(fields) => Ok(Some(fields)),
            // Scripts cannot distinguish an empty object from an empty list.
            Value::Array(items) if items.is_empty() => Ok(None),
            _ => Err(self.is_not("an object")),
        }
    }

    fn decode<T>(
        &self,
        names: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, FieldTypeError> {
        let Some(field) = self.at(names)? else {
            return Ok(None);
        };
        read(field.value).map(Some).ok_or_else(|| field.is_not(expected))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_and_null_fields_are_none() {
        let object = json!({"spec": {"replicas": null, "template": []}, "status": null});
        let fields = Fields::new(&object);
        for names in [
            "spec.replicas",
            "spec.replicas.none",
            "spec.template.spec",
            "status.replicas",
            "none",
        ] {
            assert_eq!(fields.integer(names), Ok(None), "{names}");
        }
        assert!(fields.items("status.conditions").unwrap().is_empty());
    }

    #[test]
    fn a_wrong_type_is_reported_with_its_path() {
        let object = json!({
            "spec": {"replicas": "3", "paused": 1, "half": 0.5, "template": [1]},
            "status": {"conditions": [{"type": "Ready", "status": true}, 3]},
        });
        let fields = Fields::new(&object);
        for (error, message) in [
            (
                fields.integer("spec.replicas").unwrap_err(),
                ".spec.replicas is not an integer",
            ),
            (
                fields.integer("spec.half").unwrap_err(),
                ".spec.half is not an integer",
            ),
            (
                fields.boolean("spec.paused").unwrap_err(),
                ".spec.paused is not a boolean",
            ),
            (
                fields.text("spec.paused").unwrap_err(),
                ".spec.paused is not a string",
            ),
            (fields.list("spec").unwrap_err(), ".spec is not a list"),
            (
                fields.object("spec.paused").unwrap_err(),
                ".spec.paused is not an object",
            ),
            (
                fields.text("spec.template.spec").unwrap_err(),
                ".spec.template is not an object",
            ),
            (
                fields.has_condition("Ready").unwrap_err(),
                ".status.conditions[0].status is not a string",
            ),
            (
                fields.has_condition("Other").unwrap_err(),
                ".status.conditions[1] is not an object",
            ),
        ] {
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        let object = json!({"a": 3.0, "b": -0.0, "c": 1e300});
        let fields = Fields::new(&object);
        assert_eq!(fields.integer("a"), Ok(Some(3)));
        assert_eq!(fields.integer("b"), Ok(Some(0)));
        assert!(fields.integer("c").is_err());
    }
}
