//! A request, encoded for each of several handlers.

use std::sync::OnceLock;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{HandlerError, request_fields::RequestFields};
use crate::{
    Catalog,
    catalog::{ConversionPath, HookDefinition},
    hook::HookSettings,
    registry::RegisteredHandler,
};

/// A request that can be sent to several handlers.
pub(super) struct PreparedRequest<'a> {
    catalog: &'a Catalog,
    definition: &'a HookDefinition,
    /// The start of the JSON object, with `kind` and `apiVersion`.
    head: Vec<u8>,
    fields: Vec<u8>,
    settings: Map<String, Value>,
    /// The whole request without settings of an ExtensionConfig, encoded once.
    common: OnceLock<Bytes>,
}

/// The request for one handler, and the conversion of its response.
pub(super) struct HandlerRequest {
    pub(super) body: Bytes,
    pub(super) conversion: ConversionPath,
}

impl<'a> PreparedRequest<'a> {
    /// Encodes `request` once for all handlers.
    ///
    /// # Errors
    ///
    /// When the request is not an object, or cannot be written as JSON.
    pub(super) fn new(
        catalog: &'a Catalog,
        definition: &'a HookDefinition,
        request: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let RequestFields { text, settings } = RequestFields::from_request(request)?;
        let mut head = serde_json::to_vec(&definition.typed_request(Map::new()))?;
        // Removes the closing brace; more fields follow.
        head.pop();
        Ok(Self {
            catalog,
            definition,
            head,
            fields: text,
            settings,
            common: OnceLock::new(),
        })
    }

    pub(super) fn definition(&self) -> &HookDefinition {
        self.definition
    }

    /// Encodes the request for `handler`: in its version, with the settings of its ExtensionConfig. Settings
    /// of the request take precedence.
    pub(super) fn for_handler(&self, handler: &RegisteredHandler) -> Result<HandlerRequest, HandlerError> {
        let asked = self.definition.reference();
        let path = self.catalog.conversion(asked, &handler.hook);
        let conversion = path.ok_or_else(|| HandlerError::NoConversion {
            from: asked.clone(),
            to: handler.hook.clone(),
        })?;
        let body = match conversion.is_empty() {
            true if handler.config.settings.is_empty() => self.encode_common()?,
            true => self.encode(&handler.config.settings)?.into(),
            false => self.encode_converted(handler, &conversion)?,
        };
        Ok(HandlerRequest { body, conversion })
    }

    /// Returns the request with settings, in the caller's version.
    ///
    /// # Errors
    ///
    /// When the encoded request cannot be read back.
    pub(super) fn with_settings(&self, settings: &HookSettings) -> Result<Value, HandlerError> {
        serde_json::from_slice(&self.encode(settings)?).map_err(HandlerError::Encode)
    }

    fn encode_common(&self) -> Result<Bytes, HandlerError> {
        if let Some(known) = self.common.get() {
            return Ok(known.clone());
        }
        let encoded = Bytes::from(self.encode(&HookSettings::new())?);
        Ok(self.common.get_or_init(|| encoded).clone())
    }

    fn merge_settings(&self, settings: &HookSettings) -> Option<Map<String, Value>> {
        let mut merged: Map<_, _> = settings
            .iter()
            .map(|(key, value)| (key.clone(), Value::String(value.clone())))
            .collect();
        merged.extend(self.settings.clone());
        (self.definition.has_settings() && !merged.is_empty()).then_some(merged)
    }

    fn encode(&self, settings: &HookSettings) -> Result<Vec<u8>, HandlerError> {
        let Self { head, fields, .. } = self;
        let Some(settings) = self.merge_settings(settings) else {
            return Ok([head, &fields[..], b"}"].concat());
        };
        let settings = serde_json::to_vec(&settings).map_err(HandlerError::Encode)?;
        Ok([head, &br#","settings":"#[..], &settings, fields, b"}"].concat())
    }

    fn encode_converted(
        &self,
        handler: &RegisteredHandler,
        conversion: &ConversionPath,
    ) -> Result<Bytes, HandlerError> {
        let converted = conversion.request(self.with_settings(&handler.config.settings)?)?;
        let (Some(definition), Value::Object(fields)) = (self.catalog.get(&handler.hook), converted) else {
            return Err(HandlerError::NoConversion {
                from: self.definition.reference().clone(),
                to: handler.hook.clone(),
            });
        };
        let body = serde_json::to_vec(&definition.typed_request(fields)).map_err(HandlerError::Encode)?;
        Ok(body.into())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use serde_json::json;
    use webhook_transport::ServerReference;

    use super::*;
    use crate::{
        Hook,
        cluster_api::{BeforeClusterCreate, Discovery},
        discovery::{FailurePolicy, Handler},
        registry::ExtensionConfig,
    };

    fn request_json<H: Hook>(request: Value, settings: &[(&str, &str)]) -> Value {
        let catalog = Catalog::cluster_api();
        let definition = catalog.get(&H::reference()).unwrap();
        let config = ExtensionConfig {
            name: "ext1".into(),
            resource_version: String::new(),
            server: ServerReference::url("https://example.com", "").unwrap(),
            namespace_selector: json!({}),
            settings: settings
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        };
        let handler = Handler {
            name: "a".into(),
            hook: H::reference(),
            timeout_seconds: Some(1),
            failure_policy: FailurePolicy::Fail,
        };
        let handler = RegisteredHandler::new(Arc::new(config), handler);
        let prepared = PreparedRequest::new(&catalog, definition, &request).unwrap();
        let first = prepared.for_handler(&handler).unwrap().body;
        assert_eq!(
            prepared.for_handler(&handler).unwrap().body,
            first,
            "the request is unchanged"
        );
        serde_json::from_slice(&first).unwrap()
    }

    #[test]
    fn settings_of_the_request_take_precedence() {
        let api_version = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
        let typed = |mut request: Value| {
            request["kind"] = "BeforeClusterCreateRequest".into();
            request["apiVersion"] = api_version.into();
            request
        };
        let cluster = json!({"metadata": {"name": "c"}});
        for (request, config, expected) in [
            (json!({}), &[][..], json!({})),
            (json!({"cluster": cluster}), &[], json!({"cluster": cluster})),
            (json!({"settings": {}}), &[], json!({})),
            (
                json!({"settings": {"a": "1"}}),
                &[],
                json!({"settings": {"a": "1"}}),
            ),
            (json!({}), &[("a", "2")], json!({"settings": {"a": "2"}})),
            (
                json!({"kind": "x", "cluster": cluster, "settings": {"a": "1"}}),
                &[("a", "2"), ("b", "3")],
                json!({"cluster": cluster, "settings": {"a": "1", "b": "3"}}),
            ),
        ] {
            assert_eq!(
                request_json::<BeforeClusterCreate>(request, config),
                typed(expected)
            );
        }
        assert_eq!(
            request_json::<Discovery>(json!({}), &[("a", "1")]),
            json!({"kind": "DiscoveryRequest", "apiVersion": api_version}),
            "the request has no settings"
        );
    }
}
