//! Whether the API server lets the sender of a request see the page.

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

/// The path that must be allowed, and at which the page is.
pub const PATH: &str = "/ui";

/// How long a decision of the API server holds: as long as those of tokens hold there
/// (`--authentication-token-webhook-cache-ttl` of controllers that delegate).
const HOLDS: Duration = Duration::from_secs(10);

/// How many decisions are kept.
const KEPT: u64 = 1024;

/// How many requests are asked about at the same time: whoever sends many tokens has no more of them looked at.
const AT_ONCE: usize = 4;

/// How long an answer about a request may take, with the wait until it is asked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the API server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// The page may be seen.
    Allowed,
    /// The token is of nobody that the cluster knows.
    Unknown,
    /// This user may not see it.
    Forbidden(Arc<str>),
}

/// It is not known whether the page may be seen.
#[derive(Debug, Error)]
pub(crate) enum AccessError {
    /// The API server refused to say, or was not reached.
    #[error("cannot ask the API server who may see this")]
    Ask(#[from] kube::Error),
    /// It did not answer in time, or too many are asked about.
    #[error("the API server has not said in {} seconds who may see this", PATIENCE.as_secs())]
    Timeout,
}

/// Asks the API server, and remembers for a while what it said.
pub(crate) struct PageAccess {
    client: Client,
    decisions: Cache<TokenDigest, AccessDecision>,
    asking: Semaphore,
}

// === impl PageAccess ===

impl PageAccess {
    /// Asks with the rights of `client`: to create TokenReviews and SubjectAccessReviews.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            decisions: Cache::builder().max_capacity(KEPT).time_to_live(HOLDS).build(),
            asking: Semaphore::new(AT_ONCE),
        }
    }

    /// What the API server says about the sender of a token.
    ///
    /// # Errors
    ///
    /// When it cannot be asked.
    pub(crate) async fn decide(&self, token: &BearerToken) -> Result<AccessDecision, AccessError> {
        let digest = token.digest();
        if let Some(decision) = self.decisions.get(&digest) {
            return Ok(decision);
        }
        let asked = tokio::time::timeout(PATIENCE, async {
            // Never closed, so that there is always a permit to come.
            let _permit = self.asking.acquire().await;
            self.ask(token).await
        });
        let decision = asked.await.map_err(|_| AccessError::Timeout)??;
        self.decisions.insert(digest, decision.clone());
        Ok(decision)
    }

    async fn ask(&self, token: &BearerToken) -> Result<AccessDecision, kube::Error> {
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
            spec: subject(user),
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

/// The question whether a user may see the page.
fn subject(user: UserInfo) -> SubjectAccessReviewSpec {
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
