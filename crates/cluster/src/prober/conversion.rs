//! Probes of conversion webhooks: ConversionReviews sent directly to pods, with responses validated as by the
//! API server.

use std::net::SocketAddr;

use serde_json::Value;
use windlass_crd::conversion_review::ConversionReview;

use super::{
    TrustAnchors, WebhookAddress,
    handshake::{ProbeError, Prober},
};

impl Prober {
    /// Sends `review` to `address` and returns the converted objects.
    ///
    /// # Errors
    ///
    /// When the endpoint is not trusted, does not respond, or the API server would reject its response.
    pub async fn convert(
        &self,
        address: SocketAddr,
        webhook: &WebhookAddress,
        trust: &TrustAnchors,
        review: &ConversionReview,
    ) -> Result<Vec<Value>, ProbeError> {
        let answer = self.post(address, webhook, trust, &review.request()).await?;
        review
            .parse_response(&answer)
            .map_err(|problem| ProbeError::Conversion { address, problem })
    }
}
