//! Storage version rewrites: pages of metadata, and writes that change only the version in which an object is
//! stored.

use kube::api::{GetParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_object::{ObjectKey, object};

use crate::{
    kind::Kind,
    page::Page,
    requests::{Cluster, RequestError},
};

/// An object at its listed resourceVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Key of the object.
    pub key: ObjectKey,
    /// The listed resourceVersion.
    pub resource_version: String,
}

/// The outcome of rewriting an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// The object is stored in the storage version.
    Done,
    /// Another client has written it since it was listed.
    Overtaken,
    /// The object was deleted.
    Gone,
}

impl Reference {
    /// Reads an item of a `PartialObjectMetadataList`.
    fn from_item(item: &Value, kind: &Kind) -> Option<Self> {
        let name = object::text(item, "/metadata/name")?;
        let resource_version = object::text(item, "/metadata/resourceVersion")?;
        Some(Self {
            key: kind.object(object::text(item, "/metadata/namespace"), name),
            resource_version: resource_version.to_owned(),
        })
    }
}

impl Cluster {
    /// Lists the metadata of up to `limit` objects of a kind, in all namespaces, from the continue token
    /// `next`.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; [`RequestError::expired_page`] if the continue token has expired.
    pub async fn page(
        &self,
        kind: &Kind,
        limit: u32,
        next: Option<&str>,
    ) -> Result<Page<Reference>, RequestError> {
        self.metadata_page(kind, limit, next, |item| Reference::from_item(&item, kind))
            .await
    }

    /// Makes the API server store an unchanged object in the storage version of its kind: by an empty patch
    /// for the listed resourceVersion. Objects in that version are not written.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`], and rejections by webhooks.
    pub async fn rewrite(&self, object: &Reference, manager: &str) -> Result<Rewritten, RequestError> {
        let key = &object.key;
        let requests = self.requests_for(key).await?;
        let params = PatchParams::apply(manager);
        let patch = Patch::Merge(json!({"metadata": {"resourceVersion": object.resource_version}}));
        let request = requests.patch_metadata(&key.name, &params, &patch);
        match self.send("rewrite", key, request).await {
            Ok(_) => Ok(Rewritten::Done),
            Err(error) if error.is_missing(&key.name) => Ok(Rewritten::Gone),
            // A webhook may respond with a conflict, too.
            Err(error) if error.is_conflict() => match self.resource_version(key).await? {
                None => Ok(Rewritten::Gone),
                Some(written) if written != object.resource_version => Ok(Rewritten::Overtaken),
                Some(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Returns the current resourceVersion of an object; `None` if it does not exist.
    async fn resource_version(&self, key: &ObjectKey) -> Result<Option<String>, RequestError> {
        let requests = self.requests_for(key).await?;
        let request = requests.get_metadata(&key.name, &GetParams::default());
        match self.send("read", key, request).await {
            Ok(live) => {
                let written = object::text(&live, "/metadata/resourceVersion");
                Ok(Some(written.unwrap_or_default().to_owned()))
            }
            Err(error) if error.is_missing(&key.name) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_references() {
        let kind = Kind::new("example.com/v2", "Widget");
        for (metadata, expected) in [
            (
                json!({"name": "a", "namespace": "x", "resourceVersion": "7"}),
                Some((kind.object(Some("x"), "a"), "7")),
            ),
            (
                json!({"name": "b", "resourceVersion": "8"}),
                Some((kind.object(None, "b"), "8")),
            ),
            (json!({"name": "c"}), None),
        ] {
            let reference = Reference::from_item(&json!({"metadata": metadata}), &kind);
            let reference = reference.map(|reference| (reference.key, reference.resource_version));
            let expected = expected.map(|(key, version)| (key, version.to_owned()));
            assert_eq!(reference, expected);
        }
    }

    #[test]
    fn an_object_is_missing_only_if_the_404_names_it() {
        let refused = |details: Value| {
            let status = json!({"code": 404, "reason": "NotFound", "message": "", "details": details});
            RequestError::Refused {
                operation: "rewrite",
                object: "Widget x/a".to_owned(),
                status: Box::new(serde_json::from_value(status).unwrap()),
            }
        };
        for (details, expected) in [
            (json!({"name": "a", "kind": "widgets"}), true),
            (json!({"name": "x", "kind": "namespaces"}), false),
            // The version is no longer served.
            (json!({}), false),
            (Value::Null, false),
        ] {
            let error = refused(details.clone());
            assert!(error.is_not_found());
            assert_eq!(error.is_missing("a"), expected, "{details}");
        }
    }
}
