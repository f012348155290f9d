//! Probes of endpoints, which connect to pods as the API server would.

mod admission;
mod conversion;
mod handshake;
mod post;
mod trust;

pub use handshake::{Presented, ProbeError, Prober};
pub use post::WebhookAddress;
pub use trust::{TrustAnchors, TrustAnchorsError};
