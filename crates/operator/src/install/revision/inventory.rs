//! The objects of a revision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_object::{InCluster, ObjectKey};

/// An object of a revision, as it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryItem {
    /// Its name.
    pub key: ObjectKey,
    /// Its uid; `None` until it was applied.
    pub uid: Option<String>,
}

/// The objects of a revision, in the order in which they are applied. Only what is in it, with its uid, is ever deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Vec<Line>", into = "Vec<Line>")]
pub struct RevisionInventory {
    items: Vec<InventoryItem>,
}

/// An item as it is stored.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
}

impl RevisionInventory {
    /// Objects that are to be applied.
    pub fn planned(keys: impl IntoIterator<Item = ObjectKey>) -> Self {
        keys.into_iter()
            .map(|key| InventoryItem { key, uid: None })
            .collect()
    }

    /// The objects, in the order in which they are applied.
    pub fn items(&self) -> &[InventoryItem] {
        &self.items
    }

    /// The same, to be changed.
    pub fn into_items(self) -> Vec<InventoryItem> {
        self.items
    }

    /// This inventory with the uids that `earlier` knows, followed by the objects that `earlier` alone has applied: they
    /// are there until they are removed.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        let mut known: BTreeMap<_, _> = earlier
            .items
            .iter()
            .filter_map(|item| Some((&item.key, item.uid.as_ref()?)))
            .collect();
        for item in &mut self.items {
            let uid = known.remove(&item.key);
            if item.uid.is_none() {
                item.uid = uid.cloned();
            }
        }
        let rest = earlier.items.iter().filter(|item| known.contains_key(&item.key));
        self.items.extend(rest.cloned());
        self
    }
}

impl FromIterator<InventoryItem> for RevisionInventory {
    fn from_iter<T: IntoIterator<Item = InventoryItem>>(items: T) -> Self {
        Self {
            items: items.into_iter().collect(),
        }
    }
}

impl From<Vec<Line>> for RevisionInventory {
    fn from(lines: Vec<Line>) -> Self {
        lines
            .into_iter()
            .map(|line| InventoryItem {
                key: ObjectKey {
                    cluster: InCluster::Local,
                    api_version: line.api_version,
                    kind: line.kind,
                    namespace: line.namespace,
                    name: line.name,
                },
                uid: line.uid,
            })
            .collect()
    }
}

impl From<RevisionInventory> for Vec<Line> {
    fn from(inventory: RevisionInventory) -> Self {
        let lines = inventory
            .items
            .into_iter()
            .map(|InventoryItem { key, uid }| Line {
                api_version: key.api_version,
                kind: key.kind,
                namespace: key.namespace,
                name: key.name,
                uid,
            });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            cluster: InCluster::Local,
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: Some("a".to_owned()),
            name: name.to_owned(),
        }
    }

    fn inventory(items: &[(&str, Option<&str>)]) -> RevisionInventory {
        let item = |(name, uid): &(&str, Option<&str>)| InventoryItem {
            key: key(name),
            uid: uid.map(str::to_owned),
        };
        items.iter().map(item).collect()
    }

    #[test]
    fn what_was_applied_is_not_forgotten_by_another_plan() {
        let earlier = inventory(&[
            ("kept", Some("1")),
            ("dropped", Some("2")),
            ("never applied", None),
        ]);
        let planned = RevisionInventory::planned([key("new"), key("kept")]);
        let after = planned.after(&earlier);
        assert_eq!(
            after,
            inventory(&[("new", None), ("kept", Some("1")), ("dropped", Some("2"))])
        );
        assert_eq!(after.clone().after(&after), after);
    }
}
