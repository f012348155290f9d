//! The objects that ask for the trust bundle of a ServingCertificate.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use windlass_cluster::Index;
use windlass_object::ObjectKey;
use windlass_trust::injection::asks_for;

use crate::injection::TARGET_KINDS;

/// Targets as a watch has seen them.
pub(super) type SeenTargets = BTreeMap<ObjectKey, Arc<Value>>;

/// The objects that ask for the trust bundle of a ServingCertificate, or for `ca.crt` of its Secret by the Secret's
/// name.
pub(super) fn requesting_targets(
    index: &Index,
    certificate: &ObjectKey,
    secret: Option<&str>,
) -> SeenTargets {
    TARGET_KINDS
        .iter()
        .flat_map(|kind| index.select(kind, |target| asks_for(target, certificate, secret)))
        .collect()
}
