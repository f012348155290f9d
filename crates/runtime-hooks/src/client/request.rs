//! What is sent: one request, as each of several handlers is to have it.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::HandlerError;
use crate::{
    Catalog,
    catalog::{ConversionPath, HookDefinition},
    hook::HookSettings,
    registry::RegisteredHandler,
};

/// A request that several handlers may get.
pub(super) struct PreparedRequest<'a> {
    catalog: &'a Catalog,
    definition: &'a HookDefinition,
    /// Without its settings.
    fields: Map<String, Value>,
    settings: Map<String, Value>,
    encoded: OnceLock<Encoded>,
}

/// A handler's own: what is sent to it, and how what it answers is read.
pub(super) struct HandlerRequest {
    pub(super) body: Bytes,
    pub(super) conversion: ConversionPath,
}

/// The request as JSON, in two halves between which there is room for settings.
struct Encoded {
    head: String,
    rest: String,
}

// === impl PreparedRequest ===

impl<'a> PreparedRequest<'a> {
    /// A request of `definition`, of which `request` are the fields.
    pub(super) fn new(catalog: &'a Catalog, definition: &'a HookDefinition, request: Value) -> Self {
        let mut fields = match request {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.retain(|field, _| field != "kind" && field != "apiVersion");
        let settings = match fields.shift_remove("settings") {
            Some(Value::Object(settings)) => settings,
            _ => Map::new(),
        };
        Self {
            catalog,
            definition,
            fields,
            settings,
            encoded: OnceLock::new(),
        }
    }

    /// What it is a request of.
    pub(super) fn definition(&self) -> &HookDefinition {
        self.definition
    }

    /// As `handler` is to have it: in its version, with the settings of its ExtensionConfig where the request has not others.
    pub(super) fn for_handler(&self, handler: &RegisteredHandler) -> Result<HandlerRequest, HandlerError> {
        let asked = self.definition.reference();
        let path = self.catalog.conversion(asked, &handler.hook);
        let conversion = path.ok_or_else(|| HandlerError::NoConversion {
            from: asked.clone(),
            to: handler.hook.clone(),
        })?;
        let body = match conversion.is_empty() {
            true => self.encode(&handler.config.settings)?,
            false => self.encode_converted(handler, &conversion)?,
        };
        Ok(HandlerRequest { body, conversion })
    }

    /// The request with its settings, in the version that is asked.
    pub(super) fn with_settings(&self, settings: &HookSettings) -> Value {
        let mut fields = self.fields.clone();
        if let Some(settings) = self.merged(settings) {
            fields.insert("settings".into(), settings.into());
        }
        Value::Object(fields)
    }

    fn merged(&self, settings: &HookSettings) -> Option<Map<String, Value>> {
        let mut merged: Map<_, _> = settings
            .iter()
            .map(|(key, value)| (key.clone(), Value::String(value.clone())))
            .collect();
        merged.extend(self.settings.clone());
        (self.definition.has_settings() && !merged.is_empty()).then_some(merged)
    }

    fn encode(&self, settings: &HookSettings) -> Result<Bytes, HandlerError> {
        let Encoded { head, rest } = match self.encoded.get() {
            Some(encoded) => encoded,
            None => {
                let encoded = Encoded::of(self.definition, &self.fields).map_err(HandlerError::Encode)?;
                self.encoded.get_or_init(|| encoded)
            }
        };
        let settings = match self.merged(settings) {
            Some(settings) => serde_json::to_string(&settings).map_err(HandlerError::Encode)?,
            None => return Ok([head.as_str(), rest].concat().into()),
        };
        Ok([head.as_str(), r#","settings":"#, &settings, rest]
            .concat()
            .into())
    }

    fn encode_converted(
        &self,
        handler: &RegisteredHandler,
        conversion: &ConversionPath,
    ) -> Result<Bytes, HandlerError> {
        let converted = conversion.request(self.with_settings(&handler.config.settings))?;
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

// === impl Encoded ===

impl Encoded {
    fn of(definition: &HookDefinition, fields: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        let mut head = serde_json::to_string(&definition.typed_request(Map::new()))?;
        head.pop();
        let rest = match serde_json::to_string(fields)?.as_str() {
            "{}" => "}".to_owned(),
            rest => format!(",{}", &rest[1..]),
        };
        Ok(Self { head, rest })
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc, time::Duration};

    use serde_json::json;
    use webhook_transport::ServerReference;

    use super::*;
    use crate::{
        Hook,
        cluster_api::{BeforeClusterCreate, Discovery},
        discovery::FailurePolicy,
        registry::ExtensionConfig,
    };

    fn sent<H: Hook>(request: Value, settings: &[(&str, &str)]) -> Value {
        let catalog = Catalog::of_cluster_api();
        let definition = catalog.get(&H::reference()).unwrap();
        let handler = RegisteredHandler {
            name: "a.ext1".into(),
            config: Arc::new(ExtensionConfig {
                name: "ext1".into(),
                resource_version: String::new(),
                server: ServerReference::url("https://example.com", "").unwrap(),
                namespace_selector: json!({}),
                settings: settings
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect::<BTreeMap<_, _>>(),
            }),
            hook: H::reference(),
            timeout: Duration::from_secs(1),
            failure_policy: FailurePolicy::Fail,
        };
        let prepared = PreparedRequest::new(&catalog, definition, request);
        let first = prepared.for_handler(&handler).unwrap().body;
        assert_eq!(
            prepared.for_handler(&handler).unwrap().body,
            first,
            "it stays as it was"
        );
        serde_json::from_slice(&first).unwrap()
    }

    #[test]
    fn what_the_request_sets_counts_for_more() {
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
            assert_eq!(sent::<BeforeClusterCreate>(request, config), typed(expected));
        }
        assert_eq!(
            sent::<Discovery>(json!({}), &[("a", "1")]),
            json!({"kind": "DiscoveryRequest", "apiVersion": api_version}),
            "it has no settings"
        );
    }
}
