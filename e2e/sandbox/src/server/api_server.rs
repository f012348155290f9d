//! The API server's state, which every request works on.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    authentication::{Tokens, User},
    endpoints::StoredEndpoints,
    faults::Faults,
    kinds::Kinds,
};
use crate::{
    storage::{Collection, StorageKey, Store},
    webhook::WebhookClient,
};

/// The API server: everything but its sockets.
#[derive(Clone)]
pub struct ApiServer(pub(super) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) kinds: Kinds,
    pub(super) webhooks: WebhookClient,
    pub(super) tokens: Tokens,
    pub(super) faults: Faults,
    pub(super) requests: Mutex<Vec<AuditEvent>>,
    pub(super) reinitializing: Duration,
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

// === impl ApiServer ===

impl ApiServer {
    /// A cluster without a single object.
    pub(super) fn empty(reinitializing: Duration) -> Self {
        let store = Arc::new(Store::default());
        Self(Arc::new(Shared {
            webhooks: WebhookClient::new(Arc::new(StoredEndpoints::new(store.clone()))),
            store,
            kinds: Kinds::default(),
            tokens: Tokens::default(),
            faults: Faults::default(),
            requests: Mutex::new(Vec::new()),
            reinitializing,
        }))
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

    /// A token for a ServiceAccount, whether it exists or not.
    pub fn token(&self, namespace: &str, name: &str, lifetime: Duration) -> String {
        self.0
            .tokens
            .issue(User::service_account(namespace, name), lifetime)
    }

    /// Whose token it is.
    pub(crate) fn user_of(&self, token: &str) -> Option<User> {
        self.0.tokens.user(token)
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
