//! Objects in watch events: JSON, of which kube's watcher reads only the version.

use std::borrow::Cow;

use kube::{
    Resource,
    api::ApiResource,
    core::{DynamicResourceScope, ObjectMeta},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use windlass_object::{ObjectKey, object};

use crate::kind::Kind;

/// An object as it was sent. Items of a list lack their kind.
#[derive(Clone, Debug)]
pub(crate) struct WatchedObject {
    pub(crate) object: Value,
    /// The metadata that kube reads: a part of `object`.
    metadata: ObjectMeta,
}

impl WatchedObject {
    /// Returns the key of the object, which is of this kind.
    pub(crate) fn key(&self, kind: &Kind) -> ObjectKey {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        kind.object(self.metadata.namespace.as_deref(), name)
    }
}

impl<'de> Deserialize<'de> for WatchedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let text = |pointer| object::text(&object, pointer).map(str::to_owned);
        let metadata = ObjectMeta {
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            resource_version: text("/metadata/resourceVersion"),
            uid: text("/metadata/uid"),
            ..ObjectMeta::default()
        };
        Ok(Self { object, metadata })
    }
}

impl Resource for WatchedObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
