//! The identity of this process.

use http::{Request, header::CONTENT_TYPE};
use serde_json::json;
use windlass_object::object;

use crate::requests::{Cluster, RequestError};

impl Cluster {
    /// Returns the user name that the API server has for these requests, regardless of how this process
    /// authenticates. Requested once (SelfSubjectReview, KEP-3325) for all clones.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; [`RequestError::NoUserName`] if the response has no user name. The next call
    /// requests it again.
    pub async fn user(&self) -> Result<&str, RequestError> {
        let user = self.user.get_or_try_init(|| self.request_user()).await?;
        Ok(user)
    }

    async fn request_user(&self) -> Result<String, RequestError> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header(CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())
            .map_err(kube::core::request::Error::BuildRequest);
        let answer = self.send("create", &"SelfSubjectReview", request).await?;
        let user = object::text(&answer, "/status/userInfo/username");
        user.map(str::to_owned).ok_or(RequestError::NoUserName)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use http::Response;
    use kube::{Client, client::Body};
    use tower::{BoxError, service_fn};

    use super::*;

    #[tokio::test]
    async fn the_user_name_is_requested_until_it_is_known() {
        let received = Arc::new(AtomicUsize::new(0));
        let count = received.clone();
        let answering = service_fn(move |_: Request<Body>| {
            let answer = match count.fetch_add(1, Ordering::Relaxed) {
                0 => json!({"metadata": {}}),
                _ => json!({"status": {"userInfo": {"username": "alice"}}}),
            };
            async move { Ok::<_, BoxError>(Response::new(Body::from(answer.to_string().into_bytes()))) }
        });
        let cluster = Cluster::new(Client::new(answering, "default"), Duration::from_secs(60));
        let error = cluster.user().await.unwrap_err();
        assert!(matches!(error, RequestError::NoUserName), "{error}");
        assert_eq!(cluster.user().await.unwrap(), "alice");
        assert_eq!(cluster.clone().user().await.unwrap(), "alice");
        assert_eq!(received.load(Ordering::Relaxed), 2);
    }
}
