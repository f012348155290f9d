//! The changes that `PUT` and the types of `PATCH` make to an object.

use serde_json::Value;

use super::{
    call::{Call, ResourcePath},
    checks::check_identity,
    kinds::ServedResource,
};
use crate::{
    StatusError, Subject,
    field::{self, FieldError},
    ownership::{self, Write},
    patch,
    schema::TypeSchema,
    storage::version,
};

/// The change that a write makes to an object.
pub(super) enum Mutation {
    Put(Value),
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Mutation {
    pub(super) fn parse(
        call: &Call,
        target: &ResourcePath,
        served: &ServedResource,
    ) -> Result<Self, StatusError> {
        let body = call.object()?;
        if call.method == http::Method::PUT {
            return Ok(Self::Put(body));
        }
        match call.content_type.as_str() {
            "application/json-patch+json" => Ok(Self::Json(body)),
            "application/merge-patch+json" => Ok(Self::Merge(body)),
            "application/strategic-merge-patch+json" if served.definition.is_none() => {
                Ok(Self::Strategic(body))
            }
            "application/apply-patch+yaml" => {
                if call.query("fieldManager").is_empty() {
                    let error = FieldError::new(
                        "fieldManager",
                        field::Violation::Required,
                        "is required for apply patch",
                    );
                    return Err(StatusError {
                        subject: Subject::default(),
                        ..field::invalid("meta.k8s.io", "PatchOptions", "", &[error])
                    });
                }
                check_identity(body, target, served).map(Self::Apply)
            }
            _ => {
                let strategic = if served.definition.is_none() {
                    "application/strategic-merge-patch+json, "
                } else {
                    ""
                };
                Err(StatusError::new(
                    415,
                    "UnsupportedMediaType",
                    format!(
                        "the body of the request was in an unknown format - accepted media types include: \
                         application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml"
                    ),
                ))
            }
        }
    }

    /// Returns the changed object.
    pub(super) fn apply_to(
        &self,
        current: &Value,
        served: &ServedResource,
        write: &Write<'_>,
        force: bool,
        types: &TypeSchema,
    ) -> Result<Value, StatusError> {
        match self {
            Self::Put(object) => Ok(object.clone()),
            Self::Json(patch) => patch::json(current, patch),
            Self::Merge(patch) => Ok(patch::merge(current, patch)),
            Self::Strategic(patch) => patch::strategic(current, patch, types),
            Self::Apply(applied) => {
                let mut applied = applied.clone();
                if write.subresource.is_none()
                    && served.has_status()
                    && let Some(fields) = applied.as_object_mut()
                {
                    fields.remove("status");
                }
                ownership::apply(Some(current), &applied, write, force, types)
            }
        }
    }

    /// Reports whether the client named the resourceVersion that it read.
    pub(super) fn has_resource_version(&self) -> bool {
        let (Self::Put(body) | Self::Merge(body) | Self::Strategic(body) | Self::Apply(body)) = self else {
            return false;
        };
        !version(body).is_empty()
    }
}
