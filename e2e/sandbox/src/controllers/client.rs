//! The controllers' API client. Their writes pass through the API server like those of other clients.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use serde_json::{Value, json};

use crate::{
    StatusError,
    server::{ApiServer, Call, Reply, User},
    storage::{Collection, Store},
};

pub(super) struct ControllerClient {
    server: ApiServer,
    user: User,
    root_certificate: String,
}

impl ControllerClient {
    pub(super) fn new(server: ApiServer, user: User, root_certificate: String) -> Self {
        Self {
            server,
            user,
            root_certificate,
        }
    }

    pub(super) fn server(&self) -> &ApiServer {
        &self.server
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.server.shared().store
    }

    /// The CA certificate with which pods verify the API server, as PEM.
    pub(super) fn root_certificate(&self) -> &str {
        &self.root_certificate
    }

    /// Lists all objects of a resource.
    pub(super) fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let collection = Collection {
            group,
            resource,
            namespace,
        };
        self.store()
            .list(collection)
            .0
            .into_iter()
            .map(|(_, object)| object)
            .collect()
    }

    pub(super) async fn create(&self, collection: &str, object: &Value) {
        self.report(
            "create",
            collection,
            self.call(Method::POST, collection, "application/json", object)
                .await,
        );
    }

    pub(super) async fn replace(&self, path: &str, object: &Value) {
        self.report(
            "replace",
            path,
            self.call(Method::PUT, path, "application/json", object).await,
        );
    }

    /// Changes an object with a merge patch.
    pub(super) async fn merge(&self, path: &str, patch: &Value) {
        self.report(
            "patch",
            path,
            self.call(Method::PATCH, path, "application/merge-patch+json", patch)
                .await,
        );
    }

    pub(super) async fn delete(&self, path: &str) {
        let options = json!({"propagationPolicy": "Background"});
        self.report(
            "delete",
            path,
            self.call(Method::DELETE, path, "application/json", &options)
                .await,
        );
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Reply, StatusError> {
        let manager = self.user.name.rsplit(':').next().unwrap_or_default();
        let call = Call {
            user: self.user.clone(),
            method,
            path: path.to_owned(),
            query: BTreeMap::from([("fieldManager".to_owned(), manager.to_owned())]),
            content_type: content_type.to_owned(),
            accept: "application/json".to_owned(),
            user_agent: manager.to_owned(),
            body: body.to_string().into_bytes(),
        };
        self.server.handle(call).await
    }

    /// Logs a failure. The next pass retries.
    fn report(&self, verb: &str, path: &str, outcome: Result<Reply, StatusError>) {
        if let Err(error) = outcome {
            tracing::debug!(controller = self.user.name, verb, path, error = %error.message, "a write failed");
        }
    }
}
