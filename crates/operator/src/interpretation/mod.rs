//! What the resource interpreter says of objects of bundles: whether they are healthy, what they depend on, and what of them is kept.
//!
//! Customizations are those of the cluster; what they do not say is known of Kubernetes' own kinds.

mod learned;
mod object_interpretation;
mod retaining;

pub(crate) use self::{learned::CUSTOMIZATION_KINDS, object_interpretation::Interpretation};
