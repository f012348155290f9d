//! The ServiceAccount tokens that a pod mounts.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection},
};
use kube::{Api, Client, ResourceExt, api::PostParams};
use tokio::time::Instant;

use crate::{fields::service_account, volume::content};

/// What the API server gives a token that asks for no time of its own.
const LIFETIME: i64 = 3600;

/// A token is renewed after four fifths of its time, and every day (`pkg/kubelet/token/token_manager.go`).
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The tokens of one pod.
#[derive(Default)]
pub(super) struct PodTokens {
    /// By volume and path.
    issued: BTreeMap<(String, String), String>,
    due: BTreeMap<(String, String), Instant>,
}

impl PodTokens {
    /// Requests the tokens that are missing or due.
    ///
    /// # Errors
    ///
    /// When the API server refuses one.
    pub(super) async fn renew(&mut self, client: &Client, pod: &Pod) -> kube::Result<()> {
        let Some(spec) = &pod.spec else {
            return Ok(());
        };
        let accounts: Api<ServiceAccount> =
            Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        for (volume, desired) in content::tokens(spec) {
            let key = (volume.to_owned(), desired.path.clone());
            if self.due.get(&key).is_some_and(|due| *due > Instant::now()) {
                continue;
            }
            let request = request(desired, pod);
            let answer = accounts
                .create_token_request(service_account(pod), &PostParams::default(), &request)
                .await?;
            let Some((token, expires)) = answer
                .status
                .and_then(|status| status.token.zip(status.expiration_timestamp))
            else {
                continue;
            };
            self.due
                .insert(key.clone(), Instant::now() + wait(expires.0, Timestamp::now()));
            self.issued.insert(key, token);
        }
        Ok(())
    }

    /// The tokens by volume and path.
    pub(super) fn issued(&self) -> &BTreeMap<(String, String), String> {
        &self.issued
    }

    /// When the next one is to be renewed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Whether one is to be renewed now.
    pub(super) fn are_due(&self) -> bool {
        self.due().is_some_and(|due| due <= Instant::now())
    }

    /// Lets those that are due be due later.
    pub(super) fn put_off(&mut self, time: Duration) {
        let now = Instant::now();
        for due in self.due.values_mut().filter(|due| **due <= now) {
            *due = now + time;
        }
    }
}

fn request(desired: &ServiceAccountTokenProjection, pod: &Pod) -> TokenRequest {
    TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: desired.audience.clone().map(|audience| vec![audience]),
            expiration_seconds: Some(desired.expiration_seconds.unwrap_or(LIFETIME)),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
        }),
        ..TokenRequest::default()
    }
}

/// How long a token is used.
fn wait(expires: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
    (left * 4 / 5).min(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_expires_and_every_day() {
        let now = Timestamp::UNIX_EPOCH;
        let after = |seconds: i64| wait(Timestamp::from_second(seconds).unwrap(), now).as_secs();
        assert_eq!(after(3600), 2880);
        assert_eq!(after(365 * 24 * 3600), 24 * 3600);
        assert_eq!(after(-5), 0);
    }
}
