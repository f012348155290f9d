//! The field managers of objects.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_object::{ObjectKey, object};

use crate::{
    kind::Kind,
    page::Page,
    requests::{Cluster, RequestError},
};

/// An object with other field managers than it should have.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedObject {
    /// Key of the object.
    pub key: ObjectKey,
    /// The listed resourceVersion.
    pub resource_version: String,
    /// The `metadata.managedFields` that it should have.
    pub managed_fields: Value,
}

impl Cluster {
    /// Lists the metadata of up to `limit` objects of a kind, in all namespaces, from the continue token `next`. Returns the objects
    /// for whose `metadata.managedFields` `change` returns others.
    ///
    /// # Errors
    ///
    /// As [`Cluster::page`].
    pub async fn managed_page(
        &self,
        kind: &Kind,
        limit: u32,
        next: Option<&str>,
        change: impl Fn(&Value) -> Option<Value>,
    ) -> Result<Page<ManagedObject>, RequestError> {
        self.metadata_page(kind, limit, next, |item| {
            let name = object::text(&item, "/metadata/name")?;
            Some(ManagedObject {
                key: kind.object(object::text(&item, "/metadata/namespace"), name),
                resource_version: object::text(&item, "/metadata/resourceVersion")?.to_owned(),
                managed_fields: change(item.pointer("/metadata/managedFields")?)?,
            })
        })
        .await
    }

    /// Writes the field managers of an object, if it is unchanged since it was listed.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`], rejections by webhooks, and conflicts.
    pub async fn write_managers(&self, object: &ManagedObject, manager: &str) -> Result<(), RequestError> {
        let requests = self.requests_for(&object.key).await?;
        let patch = Patch::Merge(json!({"metadata": {
            "resourceVersion": object.resource_version, "managedFields": object.managed_fields,
        }}));
        let request = requests.patch_metadata(&object.key.name, &PatchParams::apply(manager), &patch);
        self.send("write the field managers of", &object.key, request)
            .await
            .map(drop)
    }
}
