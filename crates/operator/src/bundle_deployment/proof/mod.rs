//! Proof before arming: every ready endpoint is of the newest revision, presents a certificate that verifies under the
//! trust bundle, and answers what the API server will ask it; and the API server reaches it.

mod admission;
mod conversion;
mod gate;
mod incumbents;
mod prove;
mod revisions;
mod seat;
mod servers;

pub(super) use servers::CalledService;
