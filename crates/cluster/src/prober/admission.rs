//! Probes of admission webhooks: AdmissionReviews sent directly to pods, as the API server would.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;

use super::{
    TrustAnchors, WebhookAddress,
    handshake::{ProbeError, Prober},
};

impl Prober {
    /// Sends `review`, the body of an AdmissionReview, to `address` with the timeout `patience`: the
    /// webhook's `timeoutSeconds`. The caller validates the response.
    ///
    /// # Errors
    ///
    /// As [`Prober::post`].
    pub async fn admit(
        &self,
        address: SocketAddr,
        webhook: &WebhookAddress,
        trust: &TrustAnchors,
        review: &Value,
        patience: Duration,
    ) -> Result<Value, ProbeError> {
        self.with_timeout(patience)
            .post(address, webhook, trust, review)
            .await
    }
}
