//! Proof by asking: the pod itself is sent an AdmissionReview, as the API server would send it.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;

use super::{
    TrustAnchors, WebhookAddress,
    handshake::{ProbeError, Prober},
};

// === impl Prober ===

impl Prober {
    /// Sends `review`, the body of an AdmissionReview, to `address`, which has `patience` to answer: the webhook's
    /// `timeoutSeconds`. The answer is to be judged by whoever knows what was asked.
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
        self.patient(patience).post(address, webhook, trust, review).await
    }
}
