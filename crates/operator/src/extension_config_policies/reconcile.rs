//! Reconciliation of a binding.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use tracing::{debug, info};
use windlass_cluster::{RequestError, worker::Action};
use windlass_object::{ObjectKey, names};

use super::binding::{BINDINGS, definition_key, switch_patch};
use crate::{announced::Announced, context::Context};

/// Enables or disables bindings.
pub(super) struct PolicySwitch {
    pub(super) context: Arc<Context>,
    pub(super) announced: Announced,
}

/// Why a reconciliation failed and is retried.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct SwitchPolicyError(#[from] RequestError);

/// Time between checks of the policies, which are not watched.
const RESYNC: Duration = Duration::from_secs(30);

/// Time until a binding is read again after a conflict.
const CONFLICT_RETRY: Duration = Duration::from_secs(1);

impl PolicySwitch {
    /// Enables or disables the policy.
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, SwitchPolicyError> {
        let Context { cluster, index, .. } = &*self.context;
        let policy = BINDINGS.iter().find(|policy| policy.key() == key);
        let Some(policy) = policy.filter(|_| index.find_indexed(&definition_key()).is_some()) else {
            return Ok(Action::AwaitChange);
        };
        if !index.is_complete(&policy.watch()) {
            return Ok(Action::Requeue(RESYNC));
        }
        let webhooks = policy.replacing_webhooks(index);
        let binding = match cluster.read(&key).await {
            Ok(Some(binding)) => binding,
            Ok(None) | Err(RequestError::UnknownKind { .. }) => return Ok(Action::Requeue(RESYNC)),
            // The manifest of the policies also contains the rights.
            Err(error) if error.is_forbidden() => {
                if self.announced.is_news(&key, "forbidden", None) {
                    debug!(object = %key, "Skipping this policy: the operator may not read it");
                }
                return Ok(Action::Requeue(RESYNC));
            }
            Err(error) => return Err(error.into()),
        };
        self.announced.forget(&key);
        let Some(patch) = switch_patch(&binding, webhooks.is_none()) else {
            return Ok(Action::Requeue(RESYNC));
        };
        match cluster.patch(&key, &patch, names::POLICIES).await {
            Ok(_) => {}
            Err(error) if error.is_invalid() || error.is_not_found() => {
                return Ok(Action::Requeue(CONFLICT_RETRY));
            }
            Err(error) => return Err(error.into()),
        }
        match webhooks {
            Some(webhooks) => {
                info!(object = %key, %webhooks, "Disabled the policy: a webhook replaces it");
            }
            None => info!(object = %key, "Enabled the policy: no webhook replaces it"),
        }
        Ok(Action::Requeue(RESYNC))
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, Request, Response, StatusCode};
    use json_patch::Patch;
    use kube::{Client, client::Body};
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tower::{BoxError, service_fn};
    use windlass_cluster::{Cluster, Index, SystemClock, kinds, watch::Watch};

    use super::{
        super::{
            NAME,
            binding::{GROUP, PLURAL, tests::configuration},
        },
        *,
    };

    /// An API server with one binding, or one that forbids everything.
    #[derive(Default)]
    struct Server {
        binding: Mutex<Option<Value>>,
        methods: Mutex<Vec<Method>>,
    }

    impl Server {
        async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
            let (head, body) = request.into_parts();
            let answer = |code: StatusCode, body: Value| {
                let body = Body::from(body.to_string().into_bytes());
                Ok(Response::builder().status(code).body(body)?)
            };
            if !head.uri.path().ends_with(NAME) {
                let kinds = BINDINGS.iter().map(|policy| {
                    let kind = &policy.binding.kind;
                    json!({"name": format!("{}s", kind.to_lowercase()), "kind": kind, "namespaced": false})
                });
                return answer(StatusCode::OK, json!({"resources": kinds.collect::<Vec<_>>()}));
            }
            self.methods.lock().push(head.method.clone());
            let sent = body.collect_bytes().await?;
            let mut binding = self.binding.lock();
            let Some(binding) = binding.as_mut() else {
                let status = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"});
                return answer(StatusCode::FORBIDDEN, status);
            };
            if head.method == Method::PATCH {
                json_patch::patch(binding, &serde_json::from_slice::<Patch>(&sent)?)?;
            }
            answer(StatusCode::OK, binding.clone())
        }

        /// Reconciles the binding once. Returns the methods of the requests.
        async fn reconcile(self: &Arc<Self>, index: &Arc<Index>) -> Vec<Method> {
            let server = self.clone();
            let service = service_fn(move |request| server.clone().answer(request));
            let cluster = Cluster::new(Client::new(service, "default"), Duration::from_secs(10));
            let context = Context::for_leader(cluster, index.clone(), Arc::new(SystemClock));
            let switch = Arc::new(PolicySwitch {
                context: Arc::new(context),
                announced: Announced::default(),
            });
            switch.reconcile(BINDINGS[1].key()).await.unwrap();
            std::mem::take(&mut *self.methods.lock())
        }
    }

    #[tokio::test]
    async fn a_webhook_disables_the_policy_until_it_is_deleted() {
        let (server, index) = (Arc::<Server>::default(), Arc::new(Index::new()));
        let (definitions, webhooks) = (Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION), BINDINGS[1].watch());
        assert!(server.reconcile(&index).await.is_empty(), "no ExtensionConfigs");
        let (name, kind) = (definition_key().name, definition_key().kind);
        index.apply(
            &definitions,
            json!({"apiVersion": definition_key().api_version, "kind": kind, "metadata": {"name": name}}),
        );
        assert!(
            server.reconcile(&index).await.is_empty(),
            "webhooks are not listed yet"
        );
        index.finish_relist(&webhooks);
        assert_eq!(server.reconcile(&index).await, [Method::GET], "without rights");

        let on = json!({"metadata": {"name": NAME, "resourceVersion": "7"}, "spec": {"policyName": NAME}});
        *server.binding.lock() = Some(on.clone());
        assert_eq!(server.reconcile(&index).await, [Method::GET]);
        let mut theirs = configuration(&[GROUP], &[PLURAL], &["*"]);
        theirs["apiVersion"] = webhooks.kind.api_version.as_ref().into();
        theirs["kind"] = webhooks.kind.kind.as_ref().into();
        theirs["metadata"] = json!({"name": "capi"});
        let key = ObjectKey::from_object(&theirs).unwrap();
        index.apply(&webhooks, theirs);
        assert_eq!(server.reconcile(&index).await, [Method::GET, Method::PATCH]);
        assert_eq!(server.reconcile(&index).await, [Method::GET], "it is disabled");
        // A binding that another client enables again is disabled again.
        *server.binding.lock() = Some(on);
        assert_eq!(server.reconcile(&index).await, [Method::GET, Method::PATCH]);
        index.delete(&webhooks, &key);
        assert_eq!(server.reconcile(&index).await, [Method::GET, Method::PATCH]);
        let labels = "/spec/matchResources/objectSelector/matchLabels";
        let binding = server.binding.lock().take().unwrap();
        assert_eq!(binding.pointer(labels), Some(&json!({})), "it is enabled");
    }
}
