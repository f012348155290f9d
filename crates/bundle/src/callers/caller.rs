//! The callers of a bundle.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value, json};
use windlass_object::{JsonPath, Problem, Rule, object};

use super::backend::{Backend, Unserved};
use crate::{
    kinds::BundledKind,
    parse::{ApiServiceDefinition, Bundle, Manifest, rule},
    phase::Phase,
};

/// The port of a Service that is called where none is named (ServiceReference of `apiregistration.k8s.io/v1`; the webhook of
/// Cluster API fills in the same).
const DEFAULT_PORT: i64 = 443;

/// An object of a bundle that sends traffic to its pods.
#[derive(Clone, Debug)]
pub(crate) struct Caller<'a> {
    /// The object: the bundle brings it along, or its ClusterServiceVersion declares it.
    pub(crate) object: Cow<'a, Value>,
    /// Where in it `service` and `caBundle` are.
    pub(crate) client_config: &'static str,
    /// What declares it, if that is the ClusterServiceVersion.
    pub(super) definition: Option<ApiServiceDefinition<'a>>,
    manifest: &'a Manifest,
    /// Where in the manifest it is said whom it calls.
    path: JsonPath,
}

// === impl Caller ===

impl<'a> Caller<'a> {
    /// Every one of a bundle: those that it brings along, in file order, then those that it declares.
    pub(crate) fn all(bundle: &'a Bundle) -> impl Iterator<Item = Self> {
        let brought = bundle.others.iter().filter_map(Self::from_manifest);
        let list = JsonPath::from_fields("spec.apiservicedefinitions.owned");
        let owned = bundle.csv().owned_api_services().enumerate();
        // Of a version of a group there may be several kinds.
        let mut seen = BTreeSet::new();
        let owned = owned.filter(move |(_, definition)| seen.insert(definition.name()));
        let declared = owned.map(move |(index, definition)| Self {
            object: Cow::Owned(api_service(definition)),
            client_config: "/spec",
            definition: Some(definition),
            manifest: &bundle.csv,
            path: list.item(index),
        });
        brought.chain(declared)
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

    /// Its kind and name, as messages have them.
    pub(crate) fn description(&self) -> String {
        let text = |pointer| object::text(&self.object, pointer).unwrap_or_default();
        format!("{} '{}'", text("/kind"), text("/metadata/name"))
    }

    /// Whether API servers pass requests on to it: it asks them who sends these, and what that one may do.
    pub(crate) fn is_api_service(&self) -> bool {
        object::text(&self.object, "/kind") == Some("APIService")
    }

    /// The Service that it calls, and the port; `None` where it calls a URL, or nobody.
    pub(crate) fn service(&self) -> Option<(&str, i64)> {
        let service = self.object.pointer(self.client_config)?.get("service")?;
        let port = service
            .get("port")
            .and_then(Value::as_i64)
            .unwrap_or(DEFAULT_PORT);
        Some((object::text(service, "/name")?, port))
    }

    /// What is wrong with whom it calls.
    pub(crate) fn problem(&self, unserved: &Unserved) -> Problem {
        let rule: Rule = match self.definition {
            Some(_) => rule::API_SERVICE,
            None => rule::CALLED_SERVICE,
        };
        self.manifest.problem(&self.path, rule, unserved.to_string())
    }

    /// The pods that it calls.
    pub(crate) fn backend(&self, bundle: &'a Bundle) -> Result<Backend<'a>, Unserved> {
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
