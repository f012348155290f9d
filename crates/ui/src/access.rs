//! Checks with the API server whether the sender of a request may see the page.

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, Resource, api::PostParams};
use moka::sync::Cache;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::bearer_token::{BearerToken, TokenDigest};

/// The path of the page, which users must be allowed to `get`.
pub const PATH: &str = "/ui";

/// How long a decision is cached: as long as the API server caches those of tokens
/// (`--authentication-token-webhook-cache-ttl` of delegating controllers).
const CACHE_TTL: Duration = Duration::from_secs(10);

/// How many decisions are cached.
const MAX_CACHED: u64 = 1024;

/// How many access checks run concurrently, so that a client with many tokens cannot cause more.
const MAX_CONCURRENT: usize = 4;

/// How long an access check may take, including the wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The decision of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// The user may see the page.
    Allowed,
    /// The cluster does not know the token.
    Unknown,
    /// The user may not see the page.
    Forbidden(Arc<str>),
}

/// The access check failed.
#[derive(Debug, Error)]
pub(crate) enum AccessError {
    /// The API server rejected the request, or was not reached.
    #[error("cannot check access with the API server")]
    Request(#[from] kube::Error),
    /// The API server did not respond in time, or too many checks are running.
    #[error("the API server did not decide about access within {} seconds", TIMEOUT.as_secs())]
    Timeout,
}

/// Checks access with the API server, and caches the decisions.
pub(crate) struct PageAccess {
    client: Client,
    decisions: Cache<TokenDigest, AccessDecision>,
    permits: Semaphore,
}

impl PageAccess {
    /// Creates it with the permissions of `client`, which must include creating TokenReviews and
    /// SubjectAccessReviews.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            decisions: Cache::builder()
                .max_capacity(MAX_CACHED)
                .time_to_live(CACHE_TTL)
                .build(),
            permits: Semaphore::new(MAX_CONCURRENT),
        }
    }

    /// Returns whether the sender of a token may see the page.
    ///
    /// # Errors
    ///
    /// If the access check fails.
    pub(crate) async fn decide(&self, token: &BearerToken) -> Result<AccessDecision, AccessError> {
        let digest = token.digest();
        if let Some(decision) = self.decisions.get(&digest) {
            return Ok(decision);
        }
        let decision = tokio::time::timeout(TIMEOUT, async {
            // The semaphore is never closed, so acquiring a permit never fails.
            let _permit = self.permits.acquire().await;
            self.review(token).await
        });
        let decision = decision.await.map_err(|_| AccessError::Timeout)??;
        self.decisions.insert(digest, decision.clone());
        Ok(decision)
    }

    async fn review(&self, token: &BearerToken) -> Result<AccessDecision, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.as_str().to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.create(&review).await?.status.unwrap_or_default();
        let (Some(true), Some(user)) = (status.authenticated, status.user) else {
            return Ok(AccessDecision::Unknown);
        };
        let name = user.username.clone().unwrap_or_default();
        let review = SubjectAccessReview {
            spec: review_spec(user),
            ..SubjectAccessReview::default()
        };
        let status = self.create(&review).await?.status.unwrap_or_default();
        Ok(if status.allowed && status.denied != Some(true) {
            AccessDecision::Allowed
        } else {
            AccessDecision::Forbidden(name.into())
        })
    }

    async fn create<K>(&self, review: &K) -> Result<K, kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Debug,
    {
        Api::all(self.client.clone())
            .create(&PostParams::default(), review)
            .await
    }
}

/// Returns the access review that asks whether a user may get the page.
fn review_spec(user: UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(PATH.to_owned()),
            verb: Some("get".to_owned()),
        }),
        ..SubjectAccessReviewSpec::default()
    }
}
