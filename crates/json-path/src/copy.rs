//! From one object to the same place in another.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ptr,
};

use serde_json::{Map, Value};

use crate::{
    find::{holds, position, positions},
    path::{Path, PathFilter, PathStep, set},
};

/// One copying of one path.
struct Copying<'k> {
    /// The field by which items of lists are the same.
    key: Option<&'k str>,
    /// Below which values `..` has been, before how many steps.
    visited: HashSet<(*const Value, usize)>,
}

/// Which items of two lists are the same.
enum Matching<'a> {
    /// Those at the same index.
    Index,
    /// Those with the same key, by which those of the list that is written are found.
    Key(&'a str, HashMap<String, usize>),
}

// === impl Path ===

impl Path {
    /// Copies what the path leads to in `from` to the same place in `to`, and tells whether there was anything.
    ///
    /// - What is absent or null in `from` leaves `to` as it is.
    /// - Objects and lists that are missing or null in `to` are made; anything else that is in the way stays.
    /// - The items of two lists are the same that have the same index. One more than `to` has is appended if it is copied whole or
    ///   the path names its index; one behind a gap is not.
    /// - An item that a filter selects by one value (`[?(@.name=="a")]`) is the one that the same filter selects in `to`, the second
    ///   such the second; one more than `to` has is appended, with that value.
    pub fn copy(&self, from: &Value, to: &mut Value) -> bool {
        self.copy_with(None, from, to)
    }

    /// Copies as [`Self::copy`] does, but the items of lists are the same that have the same `key`: of lists all of whose items, here and
    /// there, are objects with a text of their own in that field. There, too, items that `to` lacks are appended only whole or by a
    /// filter.
    pub fn copy_by_key(&self, key: &str, from: &Value, to: &mut Value) -> bool {
        self.copy_with(Some(key), from, to)
    }

    fn copy_with(&self, key: Option<&str>, from: &Value, to: &mut Value) -> bool {
        let mut copying = Copying {
            key,
            visited: HashSet::new(),
        };
        copying.copy(&self.steps, from, to)
    }
}

// === impl Copying ===

impl Copying<'_> {
    fn copy(&mut self, steps: &[PathStep], from: &Value, to: &mut Value) -> bool {
        match steps {
            [] if from.is_null() => false,
            [] => {
                to.clone_from(from);
                true
            }
            [PathStep::Descent, rest @ ..] => self.descend(steps, rest, from, to),
            [step, rest @ ..] => self.take(step, rest, from, to),
        }
    }

    fn take(&mut self, step: &PathStep, rest: &[PathStep], from: &Value, to: &mut Value) -> bool {
        match (step, from) {
            (PathStep::Field(name), Value::Object(fields)) => self.fields(&[name.as_str()], rest, fields, to),
            (PathStep::Wildcard, Value::Object(fields)) => {
                let names: Vec<_> = fields.keys().map(String::as_str).collect();
                self.fields(&names, rest, fields, to)
            }
            (PathStep::Filter(filter), Value::Object(fields)) => {
                let selected = fields.iter().filter(|(_, value)| holds(filter, value));
                let names: Vec<_> = selected.map(|(name, _)| name.as_str()).collect();
                self.fields(&names, rest, fields, to)
            }
            (PathStep::Index(index), Value::Array(items)) => self.item(*index, rest, items, to),
            (PathStep::Wildcard | PathStep::Slice { .. }, Value::Array(items)) => {
                self.items(positions(step, items.len()), rest, items, to)
            }
            (PathStep::Filter(filter), Value::Array(items)) => self.filtered(filter, rest, items, to),
            // From the front, so that none is behind a gap that another fills.
            (PathStep::Union(steps), Value::Array(items)) => {
                let selected = steps.iter().flat_map(|step| positions(step, items.len()));
                self.items(BTreeSet::from_iter(selected).into_iter(), rest, items, to)
            }
            (PathStep::Union(steps), _) => {
                let mut wrote = false;
                for step in steps {
                    wrote |= self.take(step, rest, from, to);
                }
                wrote
            }
            _ => false,
        }
    }

    /// This value, and all below it.
    fn descend(&mut self, steps: &[PathStep], rest: &[PathStep], from: &Value, to: &mut Value) -> bool {
        if !self.visited.insert((ptr::from_ref(from), rest.len())) {
            return false;
        }
        let wrote = self.copy(rest, from, to);
        // A whole value has been copied with all below it.
        if rest.is_empty() {
            return wrote;
        }
        wrote | self.take(&PathStep::Wildcard, steps, from, to)
    }

    fn fields(
        &mut self,
        names: &[&str],
        rest: &[PathStep],
        from: &Map<String, Value>,
        to: &mut Value,
    ) -> bool {
        let mut made = Map::new();
        let is_missing = to.is_null();
        let fields = match to {
            Value::Null => &mut made,
            Value::Object(fields) => fields,
            _ => return false,
        };
        let mut wrote = false;
        for name in names {
            let Some(value) = from.get(*name) else { continue };
            if let Some(field) = fields.get_mut(*name) {
                wrote |= self.copy(rest, value, field);
                continue;
            }
            let mut field = Value::Null;
            if self.copy(rest, value, &mut field) {
                fields.insert((*name).to_owned(), field);
                wrote = true;
            }
        }
        if is_missing && wrote {
            *to = Value::Object(made);
        }
        wrote
    }

    /// Items that are matched by key or index.
    fn items(
        &mut self,
        selected: impl Iterator<Item = usize>,
        rest: &[PathStep],
        from: &[Value],
        to: &mut Value,
    ) -> bool {
        in_list(to, |list| {
            let matching = self.matching(from, list);
            let mut wrote = false;
            for index in selected {
                let Some(item) = from.get(index) else { continue };
                let same = matching.find(item, index);
                if let Some(other) = same.and_then(|same| list.get_mut(same)) {
                    wrote |= self.copy(rest, item, other);
                } else if rest.is_empty() && !item.is_null() && same.is_none_or(|same| same == list.len()) {
                    list.push(item.clone());
                    wrote = true;
                }
            }
            wrote
        })
    }

    /// The item at an index, matched by key or by the same index in the other list.
    fn item(&mut self, index: i64, rest: &[PathStep], from: &[Value], to: &mut Value) -> bool {
        let Some(selected) = position(index, from.len()).filter(|selected| *selected < from.len()) else {
            return false;
        };
        if self
            .matching(from, to.as_array().map_or(&[], Vec::as_slice))
            .is_key()
        {
            return self.items([selected].into_iter(), rest, from, to);
        }
        in_list(to, |list| {
            let first = list.is_empty().then_some(0);
            let Some(same) = position(index, list.len()).or(first) else {
                return false;
            };
            if let Some(other) = list.get_mut(same) {
                return self.copy(rest, &from[selected], other);
            }
            let mut item = Value::Null;
            let wrote = same == list.len() && self.copy(rest, &from[selected], &mut item);
            if wrote {
                list.push(item);
            }
            wrote
        })
    }

    fn filtered(&mut self, filter: &PathFilter, rest: &[PathStep], from: &[Value], to: &mut Value) -> bool {
        let selected = |list: &[Value]| -> Vec<usize> {
            let items = list.iter().enumerate();
            let selected = items.filter(|(_, item)| holds(filter, item));
            selected.map(|(index, _)| index).collect()
        };
        let indexes = selected(from);
        let Some((names, value)) = filter.identity() else {
            return self.items(indexes.into_iter(), rest, from, to);
        };
        in_list(to, |list| {
            let matching = self.matching(from, list);
            let others = selected(list);
            let mut wrote = false;
            for (nth, index) in indexes.into_iter().enumerate() {
                let item = &from[index];
                let same = match &matching {
                    Matching::Key(..) => matching.find(item, index),
                    Matching::Index => others.get(nth).copied(),
                };
                if let Some(other) = same.and_then(|same| list.get_mut(same)) {
                    wrote |= self.copy(rest, item, other);
                    continue;
                }
                let mut made = Value::Null;
                if !rest.is_empty() {
                    set(&mut made, &names, value.clone());
                    if let Matching::Key(key, _) = matching {
                        set(&mut made, &[key], item[key].clone());
                    }
                }
                if self.copy(rest, item, &mut made) {
                    list.push(made);
                    wrote = true;
                }
            }
            wrote
        })
    }
}

impl<'k> Copying<'k> {
    fn matching(&self, from: &[Value], to: &[Value]) -> Matching<'k> {
        let keyed = self.key.and_then(|key| {
            by_key(key, from)?;
            Some(Matching::Key(key, by_key(key, to)?))
        });
        keyed.unwrap_or(Matching::Index)
    }
}

// === impl Matching ===

impl Matching<'_> {
    fn is_key(&self) -> bool {
        matches!(self, Self::Key(..))
    }

    /// Where the same is as an item at that index of the other list.
    fn find(&self, item: &Value, index: usize) -> Option<usize> {
        match self {
            Self::Index => Some(index),
            Self::Key(key, indexes) => indexes.get(item.get(key)?.as_str()?).copied(),
        }
    }
}

/// The indexes of items by what each has in a field; `None` where one has no text there, or that of another.
fn by_key(key: &str, list: &[Value]) -> Option<HashMap<String, usize>> {
    let mut indexes = HashMap::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let text = item.get(key)?.as_str()?.to_owned();
        if indexes.insert(text, index).is_some() {
            return None;
        }
    }
    Some(indexes)
}

/// Writes to a list, which is made where there is none and something is written.
fn in_list(to: &mut Value, write: impl FnOnce(&mut Vec<Value>) -> bool) -> bool {
    match to {
        Value::Array(list) => write(list),
        Value::Null => {
            let mut made = Vec::new();
            let wrote = write(&mut made);
            if wrote {
                *to = Value::Array(made);
            }
            wrote
        }
        _ => false,
    }
}
