//! Empty fields, which a script cannot tell apart: whether each was an object, a list, or nothing.

use std::collections::HashMap;

use serde_json::Value;

/// The empty fields of objects, without indexes of lists: whether one was empty here, and those of each name below.
#[derive(Debug, Default)]
pub(super) struct Empties<'a> {
    has_object: bool,
    has_list: bool,
    fields: HashMap<&'a str, Self>,
}

// === impl Empties ===

impl<'a> Empties<'a> {
    /// The empty fields of what a script was given.
    pub(super) fn of(references: &[&'a Value]) -> Self {
        let mut empties = Self::default();
        for reference in references {
            empties.note(reference);
        }
        empties
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

    /// Restores each empty list of a result: to an object where one was empty in its place, to nothing where nothing was. What becomes
    /// empty by that stays. `is_list`: what the whole is where it is empty.
    pub(super) fn restore(&self, result: &mut Value, is_list: bool) {
        if result.as_array().is_some_and(Vec::is_empty) {
            if !is_list {
                *result = Value::Object(<_>::default());
            }
            return;
        }
        Self::restore_in(Some(self), result);
    }

    /// `None` where nothing was.
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
    fn what_was_empty_is_empty_as_it_was_and_everything_else_goes() {
        let desired =
            json!({"spec": {"object": {}, "list": [], "both": {}, "items": [{"object": {}}, {"list": []}]}});
        let observed = json!({"spec": {"both": [], "theirs": {}}});
        let empties = Empties::of(&[&desired, &observed]);
        let mut result = json!({"spec": {
            "object": [], "list": [], "both": [], "theirs": [], "new": [], "parent": {"new": []},
            "items": [{"object": [], "list": [], "new": []}, {"object": []}],
        }, "full": [1]});
        empties.restore(&mut result, false);
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
        Empties::of(&[&reference]).restore(&mut result, false);
        assert_eq!(result, json!({"a.b": {}, "a": {"x": 1}, "c": {"d": []}, "": []}));
    }

    #[test]
    fn the_whole_is_what_it_is_to_be() {
        for (is_list, expected) in [(true, json!([])), (false, json!({}))] {
            let mut result = json!([]);
            Empties::default().restore(&mut result, is_list);
            assert_eq!(result, expected);
        }
    }
}
