//! The state of the API server, which all requests share.

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

/// The API server without its sockets.
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

/// One request, as in an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// The user.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for core.
    pub group: String,
    /// The resource, followed by a slash and the subresource if there is one.
    pub resource: String,
    /// The object's namespace; may be empty.
    pub namespace: String,
    /// The object's name; may be empty.
    pub name: String,
    /// The HTTP status code of the response.
    pub code: u16,
}

impl ApiServer {
    /// Creates an API server without any objects.
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

    /// Returns the faults to inject into requests.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Returns all requests so far for an object or a collection.
    pub fn requests(&self) -> Vec<AuditEvent> {
        self.0.requests.lock().clone()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Issues a token for a ServiceAccount, whether it exists or not.
    pub fn token(&self, namespace: &str, name: &str, lifetime: Duration) -> String {
        self.0
            .tokens
            .issue(User::service_account(namespace, name), lifetime)
    }

    /// Returns the user of a token.
    pub(crate) fn user_by_token(&self, token: &str) -> Option<User> {
        self.0.tokens.user(token)
    }
}

impl Shared {
    /// Returns an object as it is stored.
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

    /// Returns all objects of a built-in resource, in one namespace or in all.
    pub(crate) fn all(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let (objects, _) = self.store.list(Collection {
            group,
            resource,
            namespace,
        });
        objects.into_iter().map(|(_, object)| object).collect()
    }
}
