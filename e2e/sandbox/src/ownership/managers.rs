//! `metadata.managedFields`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Write, fields::FieldSet};

/// The fields and the last write of one manager.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: &'static str,
    pub(super) subresource: String,
    pub(super) api_version: String,
    pub(super) time: String,
    pub(super) fields: FieldSet,
}

/// The manager of the fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

impl Entry {
    pub(super) fn new(write: &Write<'_>, operation: &'static str, fields: FieldSet) -> Self {
        Self {
            manager: write.manager.to_owned(),
            operation,
            subresource: write.subresource.unwrap_or_default().to_owned(),
            api_version: write.api_version.to_owned(),
            time: time(write.now),
            fields,
        }
    }

    /// Reports whether this is the entry of a write's manager.
    pub(super) fn is_entry_of(&self, write: &Write<'_>, operation: &str) -> bool {
        self.manager == write.manager
            && self.operation == operation
            && self.subresource == write.subresource.unwrap_or_default()
            && (self.api_version == write.api_version || operation == "Apply")
    }

    fn decode(encoded: &Value) -> Option<Self> {
        let text = |name: &str| encoded[name].as_str().unwrap_or_default().to_owned();
        let operation = match encoded["operation"].as_str()? {
            "Apply" => "Apply",
            "Update" => "Update",
            _ => return None,
        };
        let mut fields = FieldSet::decode(&encoded["fieldsV1"]);
        if encoded["fieldsV1"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
        {
            fields = FieldSet::default();
        }
        Some(Self {
            manager: text("manager"),
            operation,
            subresource: text("subresource"),
            api_version: text("apiVersion"),
            time: text("time"),
            fields,
        })
    }

    fn encode(&self) -> Value {
        let mut encoded = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": self.fields.encode(),
        });
        if !self.subresource.is_empty() {
            encoded["subresource"] = json!(self.subresource);
        }
        encoded
    }
}

pub(super) fn read(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    entries.filter_map(Entry::decode).collect()
}

/// Writes the entries into an object, without those that own no fields.
pub(super) fn write(object: &mut Value, entries: &[Entry]) {
    let mut kept: Vec<&Entry> = entries.iter().filter(|entry| !entry.fields.is_empty()).collect();
    kept.sort_by(|a, b| (a.operation, &a.time, &a.manager).cmp(&(b.operation, &b.time, &b.manager)));
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    if kept.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert(
            "managedFields".to_owned(),
            kept.into_iter().map(Entry::encode).collect(),
        );
    }
}

/// Returns the entries of an object before it is applied to for the first time: without entries, one entry
/// owns all fields.
pub(super) fn before_first_apply(live: &Value, fields: FieldSet, write: &Write<'_>) -> Vec<Entry> {
    let entries = read(live);
    if !entries.is_empty() || fields.is_empty() {
        return entries;
    }
    let unknown = Write {
        manager: BEFORE_FIRST_APPLY,
        subresource: None,
        ..*write
    };
    vec![Entry::new(&unknown, "Update", fields)]
}

/// `metav1.Time` has a resolution of seconds.
pub(super) fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
