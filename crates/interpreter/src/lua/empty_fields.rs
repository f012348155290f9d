//! Restores empty objects and lists, which are the same in Lua.

use std::collections::HashMap;

use serde_json::Value;

/// The empty fields of objects, ignoring list indexes: whether there was an empty object or list here, and
/// the fields below by name.
#[derive(Debug, Default)]
pub(super) struct EmptyFields<'a> {
    has_object: bool,
    has_list: bool,
    fields: HashMap<&'a str, Self>,
}

impl<'a> EmptyFields<'a> {
    /// Collects the empty fields of the arguments of a script.
    pub(super) fn collect(references: &[&'a Value]) -> Self {
        let mut empty_fields = Self::default();
        for reference in references {
            empty_fields.note(reference);
        }
        empty_fields
    }

    fn note(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) if fields.is_empty() => self.has_object = true,
            Value::Array(items) if items.is_empty() => self.has_list = true,
            Value::Object(fields) => {
                let nested = |field: &Value| field.is_object() || field.is_array();
                for (name, field) in fields.iter().filter(|(_, field)| nested(field)) {
                    self.fields.entry(name).or_default().note(field);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.note(item)),
            _ => {}
        }
    }

    /// Restores each empty list in a result: as an object if there was an empty object in its place, and
    /// removed if there was nothing. Containers that become empty are kept. `is_list`: whether an empty
    /// result is a list.
    pub(super) fn restore(&self, result: &mut Value, is_list: bool) {
        if result.as_array().is_some_and(Vec::is_empty) {
            if !is_list {
                *result = Value::Object(<_>::default());
            }
            return;
        }
        Self::restore_in(Some(self), result);
    }

    /// `None` if there was nothing empty.
    fn restore_in(here: Option<&Self>, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let below = |name: &String| here.and_then(|here| here.fields.get(name.as_str()));
                fields.retain(|name, field| Self::is_kept(below(name), field));
            }
            Value::Array(items) => items.retain_mut(|item| Self::is_kept(here, item)),
            _ => {}
        }
    }

    fn is_kept(here: Option<&Self>, value: &mut Value) -> bool {
        if !value.as_array().is_some_and(Vec::is_empty) {
            Self::restore_in(here, value);
            return true;
        }
        let Some(here) = here else {
            return false;
        };
        if here.has_object {
            *value = Value::Object(<_>::default());
        }
        here.has_object || here.has_list
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_fields_are_restored_or_removed() {
        let desired =
            json!({"spec": {"object": {}, "list": [], "both": {}, "items": [{"object": {}}, {"list": []}]}});
        let observed = json!({"spec": {"both": [], "theirs": {}}});
        let empty_fields = EmptyFields::collect(&[&desired, &observed]);
        let mut result = json!({"spec": {
            "object": [], "list": [], "both": [], "theirs": [], "new": [], "parent": {"new": []},
            "items": [{"object": [], "list": [], "new": []}, {"object": []}],
        }, "full": [1]});
        empty_fields.restore(&mut result, false);
        assert_eq!(
            result,
            json!({"spec": {
                "object": {}, "list": [], "both": {}, "theirs": {}, "parent": {},
                "items": [{"object": {}, "list": []}, {"object": {}}],
            }, "full": [1]})
        );
    }

    #[test]
    fn a_name_with_a_dot_is_not_a_path() {
        let reference = json!({"a.b": {}, "c": {"d": []}, "": []});
        let mut result = json!({"a.b": [], "a": {"b": [], "x": 1}, "c.d": [], "c": {"d": []}, "": []});
        EmptyFields::collect(&[&reference]).restore(&mut result, false);
        assert_eq!(result, json!({"a.b": {}, "a": {"x": 1}, "c": {"d": []}, "": []}));
    }

    #[test]
    fn an_empty_result_has_the_requested_type() {
        for (is_list, expected) in [(true, json!([])), (false, json!({}))] {
            let mut result = json!([]);
            EmptyFields::default().restore(&mut result, is_list);
            assert_eq!(result, expected);
        }
    }
}
