//! Sets of fields, in the form of `fieldsV1`: `f:name`, `k:{"key":"value"}`, `v:value`, and `.` for an item itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::schema::{ListType, TypeSchema};

/// A set of fields: a tree whose nodes may be members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    member: bool,
    children: BTreeMap<String, Self>,
}

impl FieldSet {
    pub(super) fn decode(encoded: &Value) -> Self {
        let children: BTreeMap<String, Self> = encoded
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != ".")
            .map(|(name, below)| (name.clone(), Self::decode(below)))
            .collect();
        Self {
            member: children.is_empty() || encoded.get(".").is_some(),
            children,
        }
    }

    pub(super) fn encode(&self) -> Value {
        let mut encoded = Map::new();
        if self.member && !self.children.is_empty() {
            encoded.insert(".".to_owned(), json!({}));
        }
        encoded.extend(
            self.children
                .iter()
                .map(|(name, below)| (name.clone(), below.encode())),
        );
        encoded.into()
    }

    /// Returns the fields that an object sets.
    pub(super) fn from_object(object: &Value, schema: &TypeSchema) -> Self {
        let mut fields = Self::collect(object, &mut Vec::new(), schema);
        fields.member = false;
        fields.without_identity()
    }

    fn leaf() -> Self {
        Self {
            member: true,
            children: BTreeMap::new(),
        }
    }

    fn collect<'a>(value: &'a Value, path: &mut Vec<&'a str>, schema: &TypeSchema) -> Self {
        let mut children = BTreeMap::new();
        match value {
            Value::Object(fields) if !fields.is_empty() && !schema.is_atomic_object(path) => {
                for (name, value) in fields {
                    path.push(name);
                    children.insert(format!("f:{name}"), Self::collect(value, path, schema));
                    path.pop();
                }
                Self {
                    member: false,
                    children,
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let list_type = schema.list(path);
                if list_type == ListType::Atomic {
                    return Self::leaf();
                }
                path.push("*");
                for item in items {
                    let name = element(item, &list_type);
                    let mut below = match list_type {
                        ListType::Map(_) => Self::collect(item, path, schema),
                        _ => Self::leaf(),
                    };
                    below.member = true;
                    children.insert(name, below);
                }
                path.pop();
                Self {
                    member: false,
                    children,
                }
            }
            _ => Self::leaf(),
        }
    }

    /// Removes the fields that no manager can own: the object's identity and the fields that the server sets.
    fn without_identity(mut self) -> Self {
        self.children.remove("f:apiVersion");
        self.children.remove("f:kind");
        if let Some(metadata) = self.children.get_mut("f:metadata") {
            for name in [
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "managedFields",
                "selfLink",
                "generateName",
            ] {
                metadata.children.remove(&format!("f:{name}"));
            }
            if metadata.children.is_empty() {
                self.children.remove("f:metadata");
            }
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    pub(super) fn children(&self) -> impl Iterator<Item = (&String, &Self)> {
        self.children.iter()
    }

    /// Returns the subset below a child.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.get(name)
    }

    pub(super) fn is_member(&self) -> bool {
        self.member
    }

    /// Removes a top-level field and everything below it.
    pub(super) fn remove(&mut self, name: &str) {
        self.children.remove(&format!("f:{name}"));
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.member |= other.member;
        for (name, below) in &other.children {
            let merged = union
                .children
                .get(name)
                .map_or_else(|| below.clone(), |own| own.union(below));
            union.children.insert(name.clone(), merged);
        }
        union
    }

    /// Returns the members for which `keeps` holds. Its arguments are the name, the node, and the node of the
    /// other set at the same path.
    fn select(&self, other: &Self, keeps: &impl Fn(&str, &Self, Option<&Self>) -> bool) -> Self {
        self.select_as("", Some(other), keeps)
    }

    fn select_as(
        &self,
        name: &str,
        other: Option<&Self>,
        keeps: &impl Fn(&str, &Self, Option<&Self>) -> bool,
    ) -> Self {
        let children = self
            .children
            .iter()
            .map(|(name, below)| {
                let other = other.and_then(|other| other.children.get(name));
                (name.clone(), below.select_as(name, other, keeps))
            })
            .filter(|(_, selected)| !selected.is_empty())
            .collect();
        Self {
            member: keeps(name, self, other),
            children,
        }
    }

    /// Returns the members of this set that neither are in the other nor contain one of its members.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.select(other, &|_, own, other| {
            own.member && other.is_none_or(|other| !other.member && other.children.is_empty())
        })
    }

    /// Returns the members of this set that are not in the other.
    pub(super) fn without(&self, other: &Self) -> Self {
        self.select(other, &|_, own, other| {
            own.member && other.is_none_or(|other| !other.member)
        })
    }

    /// Returns the members of this set that no other manager keeps. A map is kept while others own a part of
    /// it; an item of a list is kept only while others own the item itself.
    pub(super) fn released_by(&self, others: &Self) -> Self {
        self.select(others, &|name, own, others| {
            let is_kept =
                |others: &Self| others.member || !(name.starts_with("k:") || others.children.is_empty());
            own.member && !others.is_some_and(is_kept)
        })
    }

    /// Returns the members of this set that are absent in `before`: the fields that were added. A new map is
    /// a member in addition to its fields, except for `metadata`.
    pub(super) fn additions(&self, before: &Self) -> Self {
        self.select(before, &|name, own, before| match before {
            None => own.member || name != "f:metadata",
            Some(before) => own.member && !before.member && before.children.is_empty(),
        })
    }

    /// Returns the members that are in both sets.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let children = self
            .children
            .iter()
            .filter_map(|(name, below)| Some((name.clone(), below.intersection(other.children.get(name)?))))
            .filter(|(_, both)| !both.is_empty())
            .collect();
        Self {
            member: self.member && other.member,
            children,
        }
    }

    /// Returns the members of this set that are present in `object`, themselves or by a field above or below
    /// them: an atomic value that one set has as a whole and the other in parts is present in both.
    pub(super) fn present_in(&self, object: &Self) -> Self {
        let children = self
            .children
            .iter()
            .filter_map(|(name, below)| {
                let there = object.children.get(name)?;
                let kept = if there.children.is_empty() && below.children.is_empty() {
                    below.clone()
                } else {
                    below.present_in(there)
                };
                Some((name.clone(), kept))
            })
            .filter(|(_, kept)| !kept.is_empty())
            .collect();
        Self {
            member: self.member,
            children,
        }
    }

    /// Returns the members as paths for messages: `.spec.l[k="x"].v`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.write_paths("", &mut paths);
        paths
    }

    fn write_paths(&self, before: &str, paths: &mut Vec<String>) {
        if self.member && !before.is_empty() {
            paths.push(before.to_owned());
        }
        for (name, below) in &self.children {
            below.write_paths(&format!("{before}{}", path_element(name)), paths);
        }
    }
}

/// Returns the name of an item in a set or a map list.
pub(super) fn element(item: &Value, list_type: &ListType) -> String {
    match list_type {
        ListType::Map(keys) => {
            let values: BTreeMap<&str, Value> = keys
                .iter()
                .filter_map(|key| {
                    // `protocol` is the only key of a built-in list that has a default.
                    let default = (key == "protocol").then(|| json!("TCP"));
                    Some((key.as_str(), item.get(key).cloned().or(default)?))
                })
                .collect();
            format!("k:{}", json!(values))
        }
        _ => format!("v:{item}"),
    }
}

fn path_element(name: &str) -> String {
    if let Some(field) = name.strip_prefix("f:") {
        return format!(".{field}");
    }
    if let Some(value) = name.strip_prefix("v:") {
        return format!("[={value}]");
    }
    let keys: Map<String, Value> = name
        .strip_prefix("k:")
        .and_then(|keys| serde_json::from_str(keys).ok())
        .unwrap_or_default();
    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("[{}]", keys.join(","))
}
