//! What the resource interpreter says of objects of bundles: whether they are healthy, and what they depend on.
//!
//! Customizations are those of the cluster; what they do not say is known of Kubernetes' own kinds.

mod learned;
mod object_interpretation;

pub(crate) use self::{learned::CUSTOMIZATION_KINDS, object_interpretation::Interpretation};
