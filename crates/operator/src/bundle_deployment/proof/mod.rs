//! Proof before arming: every ready endpoint is of the newest revision, presents a certificate that verifies under the
//! trust bundle, and converts.

mod conversion;
mod gate;
mod incumbents;
mod prove;
mod revisions;
mod servers;

pub(super) use servers::{CalledService, called};
