//! Reading fields of objects that have a type.

use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_object::JsonPath;

/// A field has another type than its kind gives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {expected}")]
pub struct FieldTypeError {
    /// Which, for example `.spec.replicas`.
    pub path: JsonPath,
    /// What it should be.
    pub expected: &'static str,
}

/// An object or a part of it, which knows where it is. What is null is absent.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    value: &'a Value,
    path: JsonPath,
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// All of an object.
    pub(crate) fn of(object: &'a Value) -> Self {
        Self::below(JsonPath::root(), object)
    }

    /// What is at a path.
    pub(crate) fn below(path: JsonPath, value: &'a Value) -> Self {
        Self { value, path }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &JsonPath {
        &self.path
    }

    /// What it is.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// The part at names that dots separate.
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

    /// A whole number.
    pub(crate) fn integer(&self, names: &str) -> Result<Option<i64>, FieldTypeError> {
        self.typed(names, "an integer", |value| {
            // 3.0 is what a number becomes on its way through Lua or JavaScript.
            let float = || value.as_f64().filter(|float| float.fract() == 0.0);
            value.as_i64().or_else(|| format!("{:.0}", float()?).parse().ok())
        })
    }

    /// A string.
    pub(crate) fn text(&self, names: &str) -> Result<Option<&'a str>, FieldTypeError> {
        self.typed(names, "a string", Value::as_str)
    }

    /// A truth value.
    pub(crate) fn boolean(&self, names: &str) -> Result<Option<bool>, FieldTypeError> {
        self.typed(names, "a boolean", Value::as_bool)
    }

    /// A point in time.
    pub(crate) fn timestamp(&self, names: &str) -> Result<Option<Timestamp>, FieldTypeError> {
        self.typed(names, "a timestamp", |value| value.as_str()?.parse().ok())
    }

    /// A list as it is.
    pub(crate) fn list(&self, names: &str) -> Result<Option<&'a Vec<Value>>, FieldTypeError> {
        self.typed(names, "a list", Value::as_array)
    }

    /// An object as it is.
    pub(crate) fn object(&self, names: &str) -> Result<Option<&'a Map<String, Value>>, FieldTypeError> {
        self.at(names)?.map_or(Ok(None), |field| field.as_object())
    }

    /// The items of a list; none where there is no list.
    pub(crate) fn items(&self, names: &str) -> Result<Vec<Self>, FieldTypeError> {
        let Some(list) = self.at(names)? else {
            return Ok(Vec::new());
        };
        let items = list.value.as_array().ok_or_else(|| list.is_not("a list"))?;
        let items = items.iter().enumerate();
        Ok(items
            .map(|(index, value)| Self::below(list.path.item(index), value))
            .collect())
    }

    /// The condition of a type in the status.
    pub(crate) fn condition(&self, condition_type: &str) -> Result<Option<Self>, FieldTypeError> {
        self.condition_among("status.conditions", condition_type)
    }

    /// Whether there is a condition of a type in the status, which is `True`.
    pub(crate) fn has_condition(&self, condition_type: &str) -> Result<bool, FieldTypeError> {
        self.is_true_among("status.conditions", condition_type)
    }

    /// Whether there is a condition of a type in a list, which is `True`.
    pub(crate) fn is_true_among(&self, names: &str, condition_type: &str) -> Result<bool, FieldTypeError> {
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

    /// It should be something else.
    pub(crate) fn is_not(&self, expected: &'static str) -> FieldTypeError {
        let path = self.path.clone();
        FieldTypeError { path, expected }
    }

    fn as_object(&self) -> Result<Option<&'a Map<String, Value>>, FieldTypeError> {
        match self.value {
            Value::Null => Ok(None),
            Value::Object(fields) => Ok(Some(fields)),
            // Scripts cannot tell an empty object from an empty list.
            Value::Array(items) if items.is_empty() => Ok(None),
            _ => Err(self.is_not("an object")),
        }
    }

    fn typed<T>(
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
    fn what_is_absent_or_null_is_none() {
        let object = json!({"spec": {"replicas": null, "template": []}, "status": null});
        let fields = Fields::of(&object);
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
    fn what_has_another_type_is_named() {
        let object = json!({
            "spec": {"replicas": "3", "paused": 1, "half": 0.5, "template": [1]},
            "status": {"conditions": [{"type": "Ready", "status": true}, 3]},
        });
        let fields = Fields::of(&object);
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
        let fields = Fields::of(&object);
        assert_eq!(fields.integer("a"), Ok(Some(3)));
        assert_eq!(fields.integer("b"), Ok(Some(0)));
        assert!(fields.integer("c").is_err());
    }
}
