//! How lists merge (KEP-555).

use serde_json::Value;

/// How a list merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// As a whole: the default.
    Atomic,
    /// By item, identified by value.
    Set,
    /// By item, identified by the values of these fields.
    Map(Vec<String>),
}

impl ListType {
    /// Reads the list type from the schema of a list.
    pub fn from_schema(schema: &Value) -> Self {
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Self::Set,
            Some("map") => Self::Map(strings(&schema["x-kubernetes-list-map-keys"])),
            _ => Self::Atomic,
        }
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
