//! The callers of a bundle.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value, json};
use windlass_object::{JsonPath, Problem, Rule, object};

use super::backend::{Backend, UnservedCaller};
use crate::{
    kinds::BundledKind,
    parse::{ApiServiceDefinition, Bundle, Manifest, rule},
    phase::Phase,
};

/// The default port of a Service reference (ServiceReference of `apiregistration.k8s.io/v1`; the webhook of
/// Cluster API sets the same default).
const DEFAULT_PORT: i64 = 443;

/// An object of a bundle that sends traffic to its pods.
#[derive(Clone, Debug)]
pub(crate) struct Caller<'a> {
    /// The object, which the bundle contains or its ClusterServiceVersion declares.
    pub(crate) object: Cow<'a, Value>,
    /// JSON pointer of the object that contains `service` and `caBundle`.
    pub(crate) client_config: &'static str,
    /// The declaration in the ClusterServiceVersion, if the object comes from there.
    pub(super) definition: Option<ApiServiceDefinition<'a>>,
    manifest: &'a Manifest,
    /// The path of the Service reference in the manifest.
    path: JsonPath,
}

impl<'a> Caller<'a> {
    /// Lists the callers in a bundle: bundled objects in file order, then declared ones.
    pub(crate) fn all(bundle: &'a Bundle) -> impl Iterator<Item = Self> {
        let bundled = bundle.others.iter().filter_map(Self::from_manifest);
        let list = JsonPath::from_fields("spec.apiservicedefinitions.owned");
        let owned = bundle.csv().owned_api_services().enumerate();
        // A version of a group may have several kinds.
        let mut seen = BTreeSet::new();
        let owned = owned.filter(move |(_, definition)| seen.insert(definition.name()));
        let declared = owned.map(move |(index, definition)| Self {
            object: Cow::Owned(api_service(definition)),
            client_config: "/spec",
            definition: Some(definition),
            manifest: &bundle.csv,
            path: list.item(index),
        });
        bundled.chain(declared)
    }

    fn from_manifest(manifest: &'a Manifest) -> Option<Self> {
        BundledKind::from_kind(manifest.kind()).filter(|kind| kind.phase == Phase::Callers)?;
        let client_config = match manifest.kind() {
            "ExtensionConfig" => "/spec/clientConfig",
            _ => "/spec",
        };
        let path = client_config.trim_start_matches('/').replace('/', ".");
        Some(Self {
            object: Cow::Borrowed(&manifest.object),
            client_config,
            definition: None,
            manifest,
            path: JsonPath::from_fields(&path).field("service"),
        })
    }

    /// Returns the kind and name, as messages show them.
    pub(crate) fn description(&self) -> String {
        let text = |pointer| object::text(&self.object, pointer).unwrap_or_default();
        format!("{} '{}'", text("/kind"), text("/metadata/name"))
    }

    /// Reports whether the object is an APIService, whose requests API servers proxy. Its server sends the
    /// API server reviews to authenticate and authorize them.
    pub(crate) fn is_api_service(&self) -> bool {
        object::text(&self.object, "/kind") == Some("APIService")
    }

    /// Returns the called Service and port; `None` if the object calls a URL or nothing.
    pub(crate) fn service(&self) -> Option<(&str, i64)> {
        let service = self.object.pointer(self.client_config)?.get("service")?;
        let port = service
            .get("port")
            .and_then(Value::as_i64)
            .unwrap_or(DEFAULT_PORT);
        Some((object::text(service, "/name")?, port))
    }

    pub(crate) fn problem(&self, unserved: &UnservedCaller) -> Problem {
        let rule: Rule = match self.definition {
            Some(_) => rule::API_SERVICE,
            None => rule::CALLED_SERVICE,
        };
        self.manifest.problem(&self.path, rule, unserved.to_string())
    }

    pub(crate) fn backend(&self, bundle: &'a Bundle) -> Result<Backend<'a>, UnservedCaller> {
        Backend::resolve(self, bundle)
    }
}

/// The APIService that a definition declares, with the priorities that OLM gives it
/// (`operator-lifecycle-manager`, `pkg/controller/install/apiservice.go`).
fn api_service(definition: ApiServiceDefinition<'_>) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": definition.name()},
        "spec": {
            "group": definition.group(),
            "version": definition.version(),
            "groupPriorityMinimum": 2000,
            "versionPriority": 15,
        },
    })
}
