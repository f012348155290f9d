//! A hook without its Rust types.

use std::fmt;

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::InvalidRequestError;
use crate::{
    Hook, HookMetadata, HookReference, HookRequest,
    go_json::{self, DecodeError},
};

/// A hook of a catalog.
#[derive(Clone)]
pub struct HookDefinition {
    reference: HookReference,
    metadata: HookMetadata,
    has_settings: bool,
    check_request: fn(Value) -> Result<(), DecodeError>,
    check_response: fn(Value) -> Result<(), DecodeError>,
    request_schema: fn(&mut SchemaGenerator) -> Schema,
    response_schema: fn(&mut SchemaGenerator) -> Schema,
}

impl HookDefinition {
    /// Returns the definition of `H`.
    pub fn for_hook<H: Hook>() -> Self {
        Self {
            reference: H::reference(),
            metadata: H::METADATA,
            has_settings: H::Request::HAS_SETTINGS,
            check_request: |value| go_json::read_value::<H::Request>(value).map(drop),
            check_response: |value| go_json::read_value::<H::Response>(value).map(drop),
            request_schema: SchemaGenerator::subschema_for::<H::Request>,
            response_schema: SchemaGenerator::subschema_for::<H::Response>,
        }
    }

    /// The names of the hook.
    pub fn reference(&self) -> &HookReference {
        &self.reference
    }

    /// The metadata of the hook.
    pub fn metadata(&self) -> &HookMetadata {
        &self.metadata
    }

    /// Reports whether requests have settings.
    pub fn has_settings(&self) -> bool {
        self.has_settings
    }

    /// The `kind` of the hook's requests, such as `BeforeClusterCreateRequest`.
    pub fn request_kind(&self) -> String {
        format!("{}Request", self.reference.hook)
    }

    /// The `kind` of the hook's responses, such as `BeforeClusterCreateResponse`.
    pub fn response_kind(&self) -> String {
        format!("{}Response", self.reference.hook)
    }

    /// Adds `kind` and `apiVersion` in front of a request's fields.
    pub fn typed_request(&self, request: Map<String, Value>) -> Map<String, Value> {
        self.typed(self.request_kind(), request)
    }

    /// Adds `kind` and `apiVersion` in front of a response's fields.
    pub fn typed_response(&self, response: Map<String, Value>) -> Map<String, Value> {
        self.typed(self.response_kind(), response)
    }

    fn typed(&self, kind: String, body: Map<String, Value>) -> Map<String, Value> {
        let mut typed = Map::with_capacity(body.len() + 2);
        typed.insert("kind".into(), kind.into());
        typed.insert("apiVersion".into(), self.reference.api_version.clone().into());
        let fields = body.into_iter();
        typed.extend(fields.filter(|(field, _)| field != "kind" && field != "apiVersion"));
        typed
    }

    /// Checks the fields of `request`, but not its `kind` and `apiVersion`.
    ///
    /// # Errors
    ///
    /// When a field is invalid.
    pub fn check_fields(&self, request: &Value) -> Result<(), DecodeError> {
        (self.check_request)(request.clone())
    }

    /// Checks `request`. Its `kind` and `apiVersion` may be absent, but must not be those of another type.
    ///
    /// # Errors
    ///
    /// When the request is invalid.
    pub fn check_request(&self, request: &Value) -> Result<(), InvalidRequestError> {
        let expected = [
            ("kind", self.request_kind()),
            ("apiVersion", self.reference.api_version.clone()),
        ];
        for (field, expected) in expected {
            let found = request.get(field).and_then(Value::as_str).unwrap_or_default();
            if !found.is_empty() && found != expected {
                return Err(InvalidRequestError::Kind {
                    field,
                    expected,
                    found: found.to_owned(),
                });
            }
        }
        Ok(self.check_fields(request)?)
    }

    /// Checks the fields of `response`.
    ///
    /// # Errors
    ///
    /// When a field is invalid.
    pub fn check_response(&self, response: &Value) -> Result<(), DecodeError> {
        (self.check_response)(response.clone())
    }

    /// The schema of requests, without `kind` and `apiVersion`.
    pub fn request_schema(&self, schemas: &mut SchemaGenerator) -> Schema {
        (self.request_schema)(schemas)
    }

    /// The schema of responses, without `kind` and `apiVersion`.
    pub fn response_schema(&self, schemas: &mut SchemaGenerator) -> Schema {
        (self.response_schema)(schemas)
    }
}

impl fmt::Debug for HookDefinition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HookDefinition")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}
