//! Empty fields, which a script cannot tell apart: whether each was an object, a list, or nothing.

use std::collections::HashSet;

use serde_json::Value;

/// The paths of the empty fields of objects, without indexes of lists.
#[derive(Debug, Default)]
pub(super) struct Empties {
    objects: HashSet<String>,
    lists: HashSet<String>,
}

// === impl Empties ===

impl Empties {
    /// The empty fields of what a script was given.
    pub(super) fn of(references: &[&Value]) -> Self {
        let mut empties = Self::default();
        for reference in references {
            empties.note(reference, &mut String::new());
        }
        empties
    }

    fn note(&mut self, value: &Value, path: &mut String) {
        match value {
            Value::Object(fields) if fields.is_empty() => {
                self.objects.insert(path.clone());
            }
            Value::Array(items) if items.is_empty() => {
                self.lists.insert(path.clone());
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    within(path, name, |path| self.note(field, path));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.note(item, path)),
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
        self.restore_in(result, &mut String::new());
    }

    fn restore_in(&self, value: &mut Value, path: &mut String) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, field| within(path, name, |path| self.is_kept(field, path)));
            }
            Value::Array(items) => items.retain_mut(|item| self.is_kept(item, path)),
            _ => {}
        }
    }

    fn is_kept(&self, value: &mut Value, path: &mut String) -> bool {
        if !value.as_array().is_some_and(Vec::is_empty) {
            self.restore_in(value, path);
            return true;
        }
        if self.objects.contains(path.as_str()) {
            *value = Value::Object(<_>::default());
            return true;
        }
        self.lists.contains(path.as_str())
    }
}

fn within<T>(path: &mut String, name: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let before = path.len();
    if before > 0 {
        path.push('.');
    }
    path.push_str(name);
    let seen = look(path);
    path.truncate(before);
    seen
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
    fn the_whole_is_what_it_is_to_be() {
        for (is_list, expected) in [(true, json!([])), (false, json!({}))] {
            let mut result = json!([]);
            Empties::default().restore(&mut result, is_list);
            assert_eq!(result, expected);
        }
    }
}
