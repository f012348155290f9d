//! Proof: what an endpoint really presents and answers, seen by dialling it as the API server would.

mod conversion;
mod handshake;
mod trust;

pub use conversion::ConversionWebhook;
pub use handshake::{Presented, ProbeError, Prober};
pub use trust::{TrustAnchors, TrustAnchorsError};
