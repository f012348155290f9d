//! Impersonation of ServiceAccounts ("User impersonation" in the Kubernetes documentation of authentication).
//! The API server authorizes requests as if that account had sent them, and its audit log names both users.

use std::{fmt, sync::Arc};

use http::{
    HeaderName, HeaderValue, Request,
    header::{CONTENT_TYPE, InvalidHeaderValue},
};
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_object::InCluster;

use crate::{
    request_subject::RequestSubject,
    requests::{Cluster, RequestError},
};

/// The impersonated user. Without a group header the API server adds the groups of a ServiceAccount
/// (`WithImpersonation` of k8s.io/apiserver/pkg/endpoints/filters).
const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// An invalid namespace name, in which only cluster-wide permissions apply. A review requires a namespace,
/// and does not check whether it exists (`selfsubjectrulesreview/rest.go` of kube-apiserver).
const NO_NAMESPACE: &str = "_";

/// A ServiceAccount that requests can impersonate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceAccount {
    namespace: Arc<str>,
    name: Arc<str>,
}

/// The permissions of an account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrantedRules {
    /// The rules of all its roles, in the format of RBAC.
    pub rules: Vec<Value>,
    /// Whether the account may have further permissions: some authorizers cannot list what they allow.
    pub is_incomplete: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RulesStatus {
    resource_rules: Vec<Value>,
    non_resource_rules: Vec<Value>,
    incomplete: bool,
}

impl ServiceAccount {
    /// Creates a reference to a ServiceAccount.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the namespace of the ServiceAccount.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name of the ServiceAccount.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its user name.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceAccount {}/{}", self.namespace, self.name)
    }
}

impl Cluster {
    /// Returns a cluster whose requests to the local cluster impersonate `account`, if any. Both share cached
    /// discovery.
    #[must_use]
    pub fn impersonating(&self, account: Option<&ServiceAccount>) -> Self {
        let mut acting = self.clone();
        acting.deputy = account.cloned();
        acting
    }

    /// Returns the permissions of the account of these requests (SelfSubjectRulesReview), in a namespace and
    /// cluster-wide; without a namespace only cluster-wide ones.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`].
    pub async fn granted_rules(&self, namespace: Option<&str>) -> Result<GrantedRules, RequestError> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace.unwrap_or(NO_NAMESPACE)},
        });
        let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews")
            .header(CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())
            .map_err(kube::core::request::Error::BuildRequest);
        let mut answer = self.send("create", &"SelfSubjectRulesReview", request).await?;
        // An invalid response grants no permissions.
        let status: Option<RulesStatus> = serde_json::from_value(answer["status"].take()).ok();
        let RulesStatus {
            resource_rules,
            non_resource_rules,
            incomplete,
        } = status.unwrap_or_default();
        Ok(GrantedRules {
            rules: resource_rules.into_iter().chain(non_resource_rules).collect(),
            is_incomplete: incomplete,
        })
    }

    /// Adds the impersonation header to a request.
    pub(super) fn with_impersonation(
        &self,
        subject: &dyn RequestSubject,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Request<Vec<u8>>, kube::Error> {
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        if let Some(account) = self
            .deputy
            .as_ref()
            .filter(|_| subject.cluster() == InCluster::Local)
        {
            let user = HeaderValue::try_from(account.user()).map_err(invalid_header_error)?;
            request.headers_mut().insert(IMPERSONATE_USER, user);
        }
        Ok(request)
    }
}

/// Reports a name that is invalid in a header: the request must not be sent without impersonation.
fn invalid_header_error(error: InvalidHeaderValue) -> kube::Error {
    kube::Error::Service(error.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Method, Response};
    use kube::{Client, client::Body};
    use parking_lot::Mutex;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::kind::kinds;

    /// The method of each request, and the impersonated user.
    type Sent = Arc<Mutex<Vec<(Method, Option<String>)>>>;

    fn cluster() -> (Cluster, Sent) {
        let sent = Sent::default();
        let log = sent.clone();
        let service = service_fn(move |request: Request<Body>| {
            let user = request.headers().get(IMPERSONATE_USER);
            let user = user.map(|user| user.to_str().unwrap().to_owned());
            log.lock().push((request.method().clone(), user));
            let answer = match request.uri().path() {
                "/api/v1" => {
                    json!({"resources": [{"name": "secrets", "kind": "Secret", "namespaced": true}]})
                }
                path if path.ends_with("selfsubjectrulesreviews") => json!({"status": {
                    "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}], "incomplete": true,
                }}),
                _ => json!({"metadata": {}}),
            };
            async move { Ok::<_, BoxError>(Response::new(Body::from(answer.to_string().into_bytes()))) }
        });
        (
            Cluster::new(Client::new(service, "default"), Duration::from_secs(60)),
            sent,
        )
    }

    #[tokio::test]
    async fn only_impersonating_requests_have_the_header() {
        let (cluster, sent) = cluster();
        let deputy = cluster.impersonating(Some(&ServiceAccount::new("n", "tenant")));
        let key = kinds::SECRET.object(Some("n"), "a");
        cluster.read(&key).await.unwrap();
        sent.lock().clear();
        let object =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n", "name": "a"}});
        deputy.apply(&object, "m", true).await.unwrap();
        deputy.create(&object, "m").await.unwrap();
        deputy.apply_dry_run(&object, "m").await.unwrap();
        deputy.replace(&object, "m").await.unwrap();
        deputy.delete(&key, None).await.unwrap();
        let patch = json_patch::Patch(Vec::new());
        deputy.patch(&key, &patch, "m").await.unwrap();
        deputy.patch_for_version(&key, patch, "m").await.unwrap();
        let tenant = Some("system:serviceaccount:n:tenant".to_owned());
        let all = std::mem::take(&mut *sent.lock());
        assert_eq!(all.len(), 7);
        assert!(all.iter().all(|(_, user)| *user == tenant), "{all:?}");
        cluster.delete(&key, None).await.unwrap();
        deputy.impersonating(None).delete(&key, None).await.unwrap();
        assert!(sent.lock().iter().all(|(_, user)| user.is_none()));
    }

    #[tokio::test]
    async fn invalid_account_names_are_not_sent() {
        let (cluster, sent) = cluster();
        let key = kinds::SECRET.object(Some("n"), "a");
        cluster.read(&key).await.unwrap();
        sent.lock().clear();
        let deputy = cluster.impersonating(Some(&ServiceAccount::new("n", "a\r\nImpersonate-User: admin")));
        assert!(deputy.delete(&key, None).await.is_err());
        assert_eq!(*sent.lock(), []);
    }

    #[tokio::test]
    async fn granted_rules_contain_all_rules_and_completeness() {
        let (cluster, sent) = cluster();
        let deputy = cluster.impersonating(Some(&ServiceAccount::new("n", "tenant")));
        let held = deputy.granted_rules(None).await.unwrap();
        assert_eq!((held.rules.len(), held.is_incomplete), (2, true));
        let tenant = Some("system:serviceaccount:n:tenant".to_owned());
        assert_eq!(*sent.lock(), [(Method::POST, tenant)]);
    }
}
