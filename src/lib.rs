//! Windlass installs operator bundles, gives their webhooks certificates, and keeps rotating them without a
//! single failed call.
//!
//! ```text
//! files -> Bundle -> Plan -> objects applied -> Deployment ready -> certificate served -> proof -> armed
//!         (parse,   (pure)  (phases, SSA)      (observed)          (observed)             (claims, webhooks)
//!         validate)
//! ```
//!
//! The layers, where an arrow may only point down:
//!
//! ```text
//! main -> cli -> controllers | servers | sources -> cluster | telemetry -> api -> domain
//! ```

pub mod api;
pub mod cli;
pub mod cluster;
pub mod controllers;
pub mod domain;
pub mod servers;
pub mod sources;
pub mod telemetry;
