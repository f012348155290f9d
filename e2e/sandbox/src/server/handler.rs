//! Request handling: authorization, injected faults, and dispatch to the verb.

use std::borrow::Cow;

use serde_json::json;

use super::{
    VERSION,
    api_server::{ApiServer, AuditEvent},
    authorization,
    call::{Call, Reply, ResourcePath},
    delete, discovery,
    object_errors::not_found_path,
    openapi, read, reviews, selectors, subresources, watch, write,
};
use crate::StatusError;

impl ApiServer {
    /// Handles a request.
    ///
    /// # Errors
    ///
    /// The error that the client receives.
    pub async fn handle(&self, call: Call) -> Result<Reply, StatusError> {
        if let Some(reply) = self.non_resource_reply(&call)? {
            return Ok(reply);
        }
        let target = ResourcePath::parse(&call.path).ok_or_else(not_found_path)?;
        let verb = target.verb(&call)?;
        let authorized = named_by_selector(&call, verb, &target);
        authorization::check(&self.0.store, &call.user, verb, &authorized)?;
        self.0.faults.wait_until_resumed().await;
        let outcome = match self.0.faults.draw(&call.user) {
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

    async fn dispatch(&self, call: &Call, target: &ResourcePath, verb: &str) -> Result<Reply, StatusError> {
        if let Some(reply) = reviews::reply(self, call, target)? {
            return Ok(reply);
        }
        let served = self
            .0
            .kinds
            .find(&target.group, &target.version, &target.resource)
            .filter(|served| served.namespaced || target.namespace.is_empty())
            .ok_or_else(|| self.unserved_error(target))?;
        if !target.subresource.is_empty() && !served.subresources.contains(&target.subresource) {
            return Err(not_found_path());
        }
        if let Some(reply) = subresources::reply(self, call, target, &served).await? {
            return Ok(reply);
        }
        match verb {
            "get" => read::get(self, call, target, &served).await,
            "list" => read::list(self, call, target, &served).await,
            "watch" => watch::open(self, call, target, &served).await,
            "create" => write::create(self, call, target, &served).await,
            "update" | "patch" => write::change(self, call, target, &served).await,
            "delete" => delete::delete_object(self, call, target, &served).await,
            _ => delete::delete_collection(self, call, target, &served).await,
        }
    }

    /// Returns why a resource is not served: it does not exist, or its CRD cannot be served.
    fn unserved_error(&self, target: &ResourcePath) -> StatusError {
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

    /// Handles non-resource paths: health, version, discovery, OpenAPI.
    fn non_resource_reply(&self, call: &Call) -> Result<Option<Reply>, StatusError> {
        let reply = match call.path.as_str() {
            "/healthz" | "/livez" | "/readyz" => Reply::Text("ok".to_owned()),
            "/version" => Reply::json(json!({
                "major": "1", "minor": "36", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean",
                "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux",
            })),
            path => {
                let found = match discovery::reply(&self.0.kinds, call)? {
                    Some(found) => Some(found),
                    None => openapi::reply(&self.0.kinds, path),
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
}

/// Returns the target for RBAC: listing or watching a single object by name needs no right to others.
fn named_by_selector<'a>(call: &Call, verb: &str, target: &'a ResourcePath) -> Cow<'a, ResourcePath> {
    let name = selectors::exact_name(call.query("fieldSelector"));
    match name.filter(|_| ["list", "watch", "deletecollection"].contains(&verb) && target.name.is_empty()) {
        Some(name) => Cow::Owned(ResourcePath {
            name: name.to_owned(),
            ..target.clone()
        }),
        None => Cow::Borrowed(target),
    }
}
