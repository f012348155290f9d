//! The HTTP front: TLS, authentication, authorization, routing, discovery, the verbs.

mod authentication;
mod authorization;
mod call;
mod change;
mod checks;
mod custom;
mod delete;
mod discovery;
mod escalation;
mod faults;
pub(crate) mod front;
mod hooks;
mod kinds;
mod metadata;
mod openapi;
mod read;
mod refusals;
mod reviews;
mod selectors;
mod services;
mod subresources;
mod table;
mod watch;
mod write;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};

pub use authentication::User;
pub use call::{Call, Reply};
pub(crate) use custom::{condition, set_condition};
pub use faults::{Fault, Faults};
pub use kinds::{Kinds, ServedResource};
pub(crate) use metadata::now;
pub(crate) use services::SERVICE_NAME;

use crate::{
    StatusError,
    storage::{Collection, StorageKey, Store},
    webhook,
};

/// The version that the sandbox says it is.
pub(crate) const VERSION: &str = "v1.36.0-windlass-sandbox";

/// The API server: everything but its sockets.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) kinds: Kinds,
    webhooks: webhook::WebhookClient,
    tokens: authentication::Tokens,
    faults: Faults,
    requests: Mutex<Vec<AuditEvent>>,
    reinitializing: Duration,
}

/// One request, as an audit log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for core.
    pub group: String,
    /// The resource, with its subresource after a slash.
    pub resource: String,
    /// The object's namespace; may be empty.
    pub namespace: String,
    /// The object's name; may be empty.
    pub name: String,
    /// The HTTP status code of the answer.
    pub code: u16,
}

// === impl Server ===

impl Server {
    /// An empty cluster, but for what every cluster has.
    pub(crate) fn new(reinitializing: Duration) -> Self {
        let store = Arc::new(Store::default());
        let server = Self(Arc::new(Shared {
            webhooks: webhook::WebhookClient::new(Arc::new(services::StoredEndpoints::new(store.clone()))),
            store,
            kinds: Kinds::default(),
            tokens: authentication::Tokens::default(),
            faults: Faults::default(),
            requests: Mutex::new(Vec::new()),
            reinitializing,
        }));
        server.bootstrap();
        server
    }

    /// Ways to make it misbehave.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Every request of an object or a collection up to now.
    pub fn requests(&self) -> Vec<AuditEvent> {
        self.0.requests.lock().clone()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// Whatever a client would be told.
    pub async fn handle(&self, call: Call) -> Result<Reply, StatusError> {
        if let Some(reply) = self.plain(&call)? {
            return Ok(reply);
        }
        let target = call::ResourcePath::parse(&call.path).ok_or_else(not_found_path)?;
        let verb = target.verb(&call)?;
        authorization::check(&self.0.store, &call.user, verb, &target)?;
        self.0.faults.resumed().await;
        let outcome = match self.0.faults.strike(&call.user) {
            None => self.dispatch(&call, &target, verb).await,
            Some(strike) => {
                if strike.carried_out {
                    drop(self.dispatch(&call, &target, verb).await);
                }
                Err(strike.answer)
            }
        };
        self.0.requests.lock().push(AuditEvent {
            user: call.user.name.clone(),
            verb,
            group: target.group.clone(),
            resource: target.qualified_resource(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            code: match &outcome {
                Ok(reply) => reply.code(),
                Err(error) => error.code,
            },
        });
        outcome
    }

    async fn dispatch(
        &self,
        call: &Call,
        target: &call::ResourcePath,
        verb: &str,
    ) -> Result<Reply, StatusError> {
        if let Some(reply) = reviews::answer(self, call, target)? {
            return Ok(reply);
        }
        let served = self
            .0
            .kinds
            .find(&target.group, &target.version, &target.resource)
            .filter(|served| served.namespaced || target.namespace.is_empty())
            .ok_or_else(|| self.unserved(target))?;
        if !target.subresource.is_empty() && !served.subresources.contains(&target.subresource) {
            return Err(not_found_path());
        }
        if let Some(reply) = subresources::answer(self, call, target, &served).await? {
            return Ok(reply);
        }
        match verb {
            "get" => read::one(self, call, target, &served).await,
            "list" => read::collection(self, call, target, &served).await,
            "watch" => watch::open(self, call, target, &served).await,
            "create" => write::create(self, call, target, &served).await,
            "update" | "patch" => write::change(self, call, target, &served).await,
            "delete" => delete::one(self, call, target, &served).await,
            _ => delete::collection(self, call, target, &served).await,
        }
    }

    /// Why a resource is not served: there is none, or its CRD cannot be.
    fn unserved(&self, target: &call::ResourcePath) -> StatusError {
        let name = format!("{}.{}", target.resource, target.group);
        let crd = self
            .0
            .stored("apiextensions.k8s.io", "customresourcedefinitions", "", &name);
        let broken = crd.is_some_and(|crd| {
            let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
            conditions
                .into_iter()
                .any(|condition| condition["reason"] == "InvalidCABundle")
        });
        if broken {
            StatusError::internal("error resolving resource")
        } else {
            not_found_path()
        }
    }

    /// What is no resource: health, version, discovery, OpenAPI.
    fn plain(&self, call: &Call) -> Result<Option<Reply>, StatusError> {
        let reply = match call.path.as_str() {
            "/healthz" | "/livez" | "/readyz" => Reply::Text("ok".to_owned()),
            "/version" => Reply::json(json!({
                "major": "1", "minor": "36", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean",
                "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux",
            })),
            path => {
                let found = match discovery::answer(&self.0.kinds, call)? {
                    Some(found) => Some(found),
                    None => openapi::answer(&self.0.kinds, path),
                };
                let Some(found) = found else { return Ok(None) };
                found
            }
        };
        if call.method != http::Method::GET {
            return Err(StatusError::new(
                405,
                "MethodNotAllowed",
                "the server does not allow this method",
            ));
        }
        Ok(Some(reply))
    }

    /// Namespaces and roles that every cluster has.
    fn bootstrap(&self) {
        let namespace =
            |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let everything = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]);
        let role = |name: &str, rules: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                   "metadata": {"name": name}, "rules": rules})
        };
        let binding = |name: &str, subject: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                   "metadata": {"name": name}, "subjects": [subject],
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}})
        };
        let reviews = json!([
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        ]);
        let group =
            |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name});
        let basic = json!([{"apiGroups": ["authorization.k8s.io", "authentication.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"],
            "verbs": ["create"]}]);
        let objects = ["default", "kube-system", "kube-public", "kube-node-lease"]
            .map(namespace)
            .into_iter()
            .chain([
                role("cluster-admin", everything),
                binding("cluster-admin", group("system:masters")),
                role("system:auth-delegator", reviews),
                role("system:basic-user", basic),
                binding("system:basic-user", group("system:authenticated")),
            ]);
        for object in objects {
            write::bootstrap(self, object);
        }
    }
}

// === impl Shared ===

impl Shared {
    /// An object as it is stored.
    pub(crate) fn stored(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        self.store.read(&StorageKey {
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// All objects of a built-in resource, in one namespace or in all.
    pub(crate) fn all(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let (objects, _) = self.store.list(Collection {
            group,
            resource,
            namespace,
        });
        objects.into_iter().map(|(_, object)| object).collect()
    }
}

fn not_found_path() -> StatusError {
    StatusError::new(
        404,
        "NotFound",
        "the server could not find the requested resource",
    )
}
