//! Index entries.

use std::sync::Arc;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde_json::Value;
use windlass_object::{names, object};
use windlass_trust::injection::{CaSource, TargetKinds};

use crate::relation::Relation;

/// An index entry, stored as text, since a parsed object takes about seven times the memory and a cluster has
/// many. Long texts are compressed, since they are repetitive: a webhook configuration has its CA bundle in
/// each webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedObject {
    form: Form,
    version: Option<Arc<str>>,
    bundle_deployment: Option<Arc<str>>,
    /// Empty for most objects.
    relations: Option<Arc<[Relation]>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Text(Arc<str>),
    Compressed(Arc<[u8]>),
    Parsed(Arc<Value>),
}

/// The minimum length of compressed texts in bytes.
const MIN_COMPRESSED: usize = 1 << 10;

/// The length of most texts in bytes, as the initial capacity: growing a buffer copies it.
const INITIAL_CAPACITY: usize = 8 << 10;

impl IndexedObject {
    /// Creates an entry. Targets are of these `kinds`.
    pub(crate) fn new(object: &Value, kinds: &TargetKinds) -> Self {
        // Windlass's own objects are few, and read at every change of others.
        let (group, _) = object::group_and_version(object::text(object, "/apiVersion").unwrap_or_default());
        let form = match group == names::GROUP {
            true => Form::Parsed(Arc::new(object.clone())),
            false => Form::from_text(text(object)),
        };
        Self {
            form,
            version: object::text(object, "/metadata/resourceVersion").map(Into::into),
            bundle_deployment: object::label(object, names::BUNDLE_DEPLOYMENT).map(Into::into),
            relations: Some(Relation::all_of(object, kinds))
                .filter(|relations| !relations.is_empty())
                .map(Into::into),
        }
    }

    /// Returns the parsed object. To save memory, drop each object before reading the next.
    pub fn read(&self) -> Arc<Value> {
        match &self.form {
            // A serialized `Value` can be parsed.
            Form::Text(text) => Arc::new(serde_json::from_str(text).unwrap_or_default()),
            Form::Compressed(bytes) => {
                let text = decompress_size_prepended(bytes).unwrap_or_default();
                Arc::new(serde_json::from_slice(&text).unwrap_or_default())
            }
            Form::Parsed(object) => object.clone(),
        }
    }

    /// Returns the resourceVersion, without parsing.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the BundleDeployment in its label, without parsing.
    pub fn bundle_deployment(&self) -> Option<&str> {
        self.bundle_deployment.as_deref()
    }

    /// Returns the trust bundles that it requests, without parsing.
    pub fn ca_sources(&self) -> impl Iterator<Item = &CaSource> {
        self.relations().iter().filter_map(|relation| match relation {
            Relation::Target(source) => Some(source),
            Relation::Endpoints(..) => None,
        })
    }

    /// Returns its relations to other objects, without parsing.
    pub(crate) fn relations(&self) -> &[Relation] {
        self.relations.as_deref().unwrap_or_default()
    }
}

impl From<Value> for IndexedObject {
    fn from(object: Value) -> Self {
        Self::new(&object, &TargetKinds::default())
    }
}

impl Form {
    fn from_text(text: String) -> Self {
        if text.len() >= MIN_COMPRESSED {
            let compressed = compress_prepend_size(text.as_bytes());
            if compressed.len() < text.len() / 4 * 3 {
                return Self::Compressed(compressed.into());
            }
        }
        Self::Text(text.into())
    }
}

fn text(object: &Value) -> String {
    let mut text = Vec::with_capacity(INITIAL_CAPACITY);
    // Serializing a `Value` cannot fail, and yields UTF-8.
    let _ = serde_json::to_writer(&mut text, object);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_windlass_are_stored_parsed() {
        for (api_version, is_parsed) in [(names::API_VERSION, true), ("v1", false), ("apps/v1", false)] {
            let object = IndexedObject::from(json!({"apiVersion": api_version}));
            assert_eq!(matches!(object.form, Form::Parsed(_)), is_parsed, "{api_version}");
            assert_eq!(object.read()["apiVersion"], api_version);
        }
    }

    #[test]
    fn repetitive_objects_are_compressed() {
        let bundle = (0..2000_u64)
            .map(|number| (number * 7919 % 9973).to_string())
            .collect::<String>();
        let webhooks = vec![json!({"clientConfig": {"caBundle": bundle}}); 5];
        let object = json!({"apiVersion": "v1", "webhooks": webhooks});
        let held = IndexedObject::from(object.clone());
        assert!(matches!(&held.form, Form::Compressed(bytes) if bytes.len() < 2 * bundle.len()));
        assert_eq!(*held.read(), object);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".*", inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn objects_are_read_back_unchanged(object in any_value()) {
            prop_assert_eq!(&*IndexedObject::from(object.clone()).read(), &object);
            let long = json!({"apiVersion": "v1", "twice": [object, object], "long": "a".repeat(MIN_COMPRESSED)});
            let held = IndexedObject::from(long.clone());
            prop_assert!(matches!(held.form, Form::Compressed(_)));
            prop_assert_eq!(&*held.read(), &long);
        }
    }
}
