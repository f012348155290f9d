//! Copies values from one object to the same place in another.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ptr,
};

use serde_json::{Map, Value};

use crate::{
    find::{is_selected, position, positions},
    path::{Path, PathFilter, PathStep, set},
};

/// The state of copying one path.
struct CopyOperation<'k> {
    /// The field that identifies items of lists.
    key: Option<&'k str>,
    /// The values that a `..` has visited, each with the number of remaining steps.
    visited: HashSet<(*const Value, usize)>,
}

/// How items of two lists are matched.
enum ItemMatching<'a> {
    /// Items match by their index in the list.
    Index,
    /// By a key field, with the index of each key in the target list.
    Key(&'a str, HashMap<String, usize>),
}

impl Path {
    /// Copies what the path selects in `from` to the same place in `to`; returns whether anything was
    /// selected.
    ///
    /// - Values that are absent or null in `from` leave `to` unchanged.
    /// - Objects and lists that are missing or null in `to` are created; any other value there is kept.
    /// - Items of two lists match by index. An item beyond the end of `to` is appended if it is the next one, and is copied whole or named
    ///   by its index.
    /// - An item that a filter selects by one value (`[?(@.name=="a")]`) matches the item that the same filter selects in `to`; several match
    ///   in their order. An item without match is appended, with that value.
    pub fn copy(&self, from: &Value, to: &mut Value) -> bool {
        self.copy_with(None, from, to)
    }

    /// Like [`Self::copy`], but matches items of lists by the string field `key`, if all items of both lists
    /// have a unique one. An item without match is appended only if it is copied whole or selected by a
    /// filter.
    pub fn copy_by_key(&self, key: &str, from: &Value, to: &mut Value) -> bool {
        self.copy_with(Some(key), from, to)
    }

    fn copy_with(&self, key: Option<&str>, from: &Value, to: &mut Value) -> bool {
        let mut operation = CopyOperation {
            key,
            visited: HashSet::new(),
        };
        operation.copy(&self.steps, from, to)
    }
}

impl CopyOperation<'_> {
    fn copy(&mut self, steps: &[PathStep], from: &Value, to: &mut Value) -> bool {
        match steps {
            [] if from.is_null() => false,
            [] => {
                to.clone_from(from);
                true
            }
            [PathStep::Descent, rest @ ..] => self.copy_descendants(steps, rest, from, to),
            [step, rest @ ..] => self.copy_step(step, rest, from, to),
        }
    }

    fn copy_step(&mut self, step: &PathStep, rest: &[PathStep], from: &Value, to: &mut Value) -> bool {
        match (step, from) {
            (PathStep::Field(name), Value::Object(fields)) => {
                self.copy_fields(&[name.as_str()], rest, fields, to)
            }
            (PathStep::Wildcard, Value::Object(fields)) => {
                let names: Vec<_> = fields.keys().map(String::as_str).collect();
                self.copy_fields(&names, rest, fields, to)
            }
            (PathStep::Filter(filter), Value::Object(fields)) => {
                let selected = fields.iter().filter(|(_, value)| is_selected(filter, value));
                let names: Vec<_> = selected.map(|(name, _)| name.as_str()).collect();
                self.copy_fields(&names, rest, fields, to)
            }
            (PathStep::Index(index), Value::Array(items)) => self.copy_item(*index, rest, items, to),
            (PathStep::Wildcard | PathStep::Slice { .. }, Value::Array(items)) => {
                self.copy_items(positions(step, items.len()), rest, items, to)
            }
            (PathStep::Filter(filter), Value::Array(items)) => self.copy_filtered(filter, rest, items, to),
            // In the order of the list, so that no item is skipped because its predecessor is appended later.
            (PathStep::Union(steps), Value::Array(items)) => {
                let selected = steps.iter().flat_map(|step| positions(step, items.len()));
                self.copy_items(BTreeSet::from_iter(selected).into_iter(), rest, items, to)
            }
            (PathStep::Union(steps), _) => {
                let mut wrote = false;
                for step in steps {
                    wrote |= self.copy_step(step, rest, from, to);
                }
                wrote
            }
            _ => false,
        }
    }

    /// Copies a value and all its descendants.
    fn copy_descendants(
        &mut self,
        steps: &[PathStep],
        rest: &[PathStep],
        from: &Value,
        to: &mut Value,
    ) -> bool {
        if !self.visited.insert((ptr::from_ref(from), rest.len())) {
            return false;
        }
        let wrote = self.copy(rest, from, to);
        // The whole value was copied, including its descendants.
        if rest.is_empty() {
            return wrote;
        }
        wrote | self.copy_step(&PathStep::Wildcard, steps, from, to)
    }

    fn copy_fields(
        &mut self,
        names: &[&str],
        rest: &[PathStep],
        from: &Map<String, Value>,
        to: &mut Value,
    ) -> bool {
        let mut created = Map::new();
        let is_missing = to.is_null();
        let fields = match to {
            Value::Null => &mut created,
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
            *to = Value::Object(created);
        }
        wrote
    }

    /// Copies items, matched by key or index.
    fn copy_items(
        &mut self,
        selected: impl Iterator<Item = usize>,
        rest: &[PathStep],
        from: &[Value],
        to: &mut Value,
    ) -> bool {
        write_list(to, |list| {
            let matching = self.matching(from, list);
            let mut wrote = false;
            for index in selected {
                let Some(item) = from.get(index) else { continue };
                let target = matching.find(item, index);
                if let Some(other) = target.and_then(|target| list.get_mut(target)) {
                    wrote |= self.copy(rest, item, other);
                } else if rest.is_empty()
                    && !item.is_null()
                    && target.is_none_or(|target| target == list.len())
                {
                    list.push(item.clone());
                    wrote = true;
                }
            }
            wrote
        })
    }

    /// Copies the item at an index, matched by key or index.
    fn copy_item(&mut self, index: i64, rest: &[PathStep], from: &[Value], to: &mut Value) -> bool {
        let Some(selected) = position(index, from.len()).filter(|selected| *selected < from.len()) else {
            return false;
        };
        if self
            .matching(from, to.as_array().map_or(&[], Vec::as_slice))
            .is_key()
        {
            return self.copy_items([selected].into_iter(), rest, from, to);
        }
        write_list(to, |list| {
            let first = list.is_empty().then_some(0);
            let Some(target) = position(index, list.len()).or(first) else {
                return false;
            };
            if let Some(other) = list.get_mut(target) {
                return self.copy(rest, &from[selected], other);
            }
            let mut item = Value::Null;
            let wrote = target == list.len() && self.copy(rest, &from[selected], &mut item);
            if wrote {
                list.push(item);
            }
            wrote
        })
    }

    fn copy_filtered(
        &mut self,
        filter: &PathFilter,
        rest: &[PathStep],
        from: &[Value],
        to: &mut Value,
    ) -> bool {
        let selected = |list: &[Value]| -> Vec<usize> {
            let items = list.iter().enumerate();
            let selected = items.filter(|(_, item)| is_selected(filter, item));
            selected.map(|(index, _)| index).collect()
        };
        let indexes = selected(from);
        let Some((names, value)) = filter.identity() else {
            return self.copy_items(indexes.into_iter(), rest, from, to);
        };
        write_list(to, |list| {
            let matching = self.matching(from, list);
            let others = selected(list);
            let mut wrote = false;
            for (nth, index) in indexes.into_iter().enumerate() {
                let item = &from[index];
                let target = match &matching {
                    ItemMatching::Key(..) => matching.find(item, index),
                    ItemMatching::Index => others.get(nth).copied(),
                };
                if let Some(other) = target.and_then(|target| list.get_mut(target)) {
                    wrote |= self.copy(rest, item, other);
                    continue;
                }
                let mut created = Value::Null;
                if !rest.is_empty() {
                    set(&mut created, &names, value.clone());
                    if let ItemMatching::Key(key, _) = matching {
                        set(&mut created, &[key], item[key].clone());
                    }
                }
                if self.copy(rest, item, &mut created) {
                    list.push(created);
                    wrote = true;
                }
            }
            wrote
        })
    }
}

impl<'k> CopyOperation<'k> {
    fn matching(&self, from: &[Value], to: &[Value]) -> ItemMatching<'k> {
        let keyed = self.key.and_then(|key| {
            index_by_key(key, from)?;
            Some(ItemMatching::Key(key, index_by_key(key, to)?))
        });
        keyed.unwrap_or(ItemMatching::Index)
    }
}

impl ItemMatching<'_> {
    fn is_key(&self) -> bool {
        matches!(self, Self::Key(..))
    }

    /// Returns the index in the target list of the match for the item at `index`.
    fn find(&self, item: &Value, index: usize) -> Option<usize> {
        match self {
            Self::Index => Some(index),
            Self::Key(key, indexes) => indexes.get(item.get(key)?.as_str()?).copied(),
        }
    }
}

/// Indexes items by a string field; `None` if it is missing in an item or not unique.
fn index_by_key(key: &str, list: &[Value]) -> Option<HashMap<String, usize>> {
    let mut indexes = HashMap::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let text = item.get(key)?.as_str()?.to_owned();
        if indexes.insert(text, index).is_some() {
            return None;
        }
    }
    Some(indexes)
}

/// Passes a list to `write`; creates it if it is missing and something is written.
fn write_list(to: &mut Value, write: impl FnOnce(&mut Vec<Value>) -> bool) -> bool {
    match to {
        Value::Array(list) => write(list),
        Value::Null => {
            let mut created = Vec::new();
            let wrote = write(&mut created);
            if wrote {
                *to = Value::Array(created);
            }
            wrote
        }
        _ => false,
    }
}
