//! Access reviews. The API server stores none of them.

use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::{
    impersonation::ServiceAccount,
    requests::{Cluster, RequestError},
};

impl Cluster {
    /// Reports whether `account`, or the sender of the request, is allowed what `attributes` describe:
    /// `resourceAttributes` or `nonResourceAttributes` of a review (SubjectAccessReview,
    /// SelfSubjectAccessReview).
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; forbidden if the sender may not review the access of others.
    pub async fn is_allowed(
        &self,
        account: Option<&ServiceAccount>,
        attributes: &Value,
    ) -> Result<bool, RequestError> {
        let mut spec = attributes.clone();
        let (kind, resource) = match account {
            None => ("SelfSubjectAccessReview", "selfsubjectaccessreviews"),
            Some(account) => {
                spec["user"] = account.user().into();
                // The groups that the API server puts into each token.
                spec["groups"] = json!([
                    "system:serviceaccounts",
                    format!("system:serviceaccounts:{}", account.namespace()),
                    "system:authenticated",
                ]);
                ("SubjectAccessReview", "subjectaccessreviews")
            }
        };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let request = Request::post(format!("/apis/authorization.k8s.io/v1/{resource}"))
            .header(CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())
            .map_err(kube::core::request::Error::BuildRequest);
        let answer = self.send("create", &kind, request).await?;
        Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Response;
    use kube::{Client, client::Body};
    use tower::{BoxError, service_fn};

    use super::*;

    #[tokio::test]
    async fn reviews_are_for_the_sender_or_an_account_with_its_groups() {
        let service = service_fn(|request: Request<Body>| async move {
            let is_about_others = request.uri().path().ends_with("/subjectaccessreviews");
            let body = request.into_body().collect_bytes().await?;
            let review: Value = serde_json::from_slice(&body)?;
            let account = "system:serviceaccount:n:a";
            let groups = json!([
                "system:serviceaccounts",
                "system:serviceaccounts:n",
                "system:authenticated"
            ]);
            let allowed = is_about_others
                && review["spec"]["user"] == account
                && review["spec"]["groups"] == groups
                && review["spec"]["resourceAttributes"]["verb"] == "get";
            let answer = json!({"status": {"allowed": allowed}});
            Ok::<_, BoxError>(Response::new(Body::from(answer.to_string().into_bytes())))
        });
        let cluster = Cluster::new(Client::new(service, "default"), Duration::from_secs(60));
        let attributes = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
        let account = ServiceAccount::new("n", "a");
        assert!(cluster.is_allowed(Some(&account), &attributes).await.unwrap());
        assert!(!cluster.is_allowed(None, &attributes).await.unwrap());
    }
}
