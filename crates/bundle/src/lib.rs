//! registry+v1 operator bundles: where they come from, what is in them, what is wrong with them, and what an install of
//! one applies.
//!
//! ```text
//! source -> files -> Bundle -> problems
//!                           -> Rendered: objects, conversions, certificates
//! ```

pub mod check;
mod kinds;
mod parse;
mod phase;
pub mod render;
pub mod sources;
pub mod upgrade;

pub use kinds::BundledKind;
pub use parse::{
    Bundle, ClusterServiceVersion, DeploymentSpec, Files, InstallMode, Manifest, ParsedBundle, Permission,
    WebhookDefinition, WebhookType, crds, read_crds, rule,
};
pub use phase::Phase;
