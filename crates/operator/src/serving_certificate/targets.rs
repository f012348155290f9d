//! The objects that ask for the trust bundle of a ServingCertificate.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::Index;
use windlass_object::ObjectKey;
use windlass_trust::injection::asks_for;

use crate::injection::TARGET_KINDS;

/// The objects that ask for the trust bundle of a ServingCertificate, or for `ca.crt` of its Secret by the Secret's
/// name.
pub(super) fn requesting_targets(
    index: &Index,
    certificate: &ObjectKey,
    secret: Option<&str>,
) -> Vec<Arc<Value>> {
    TARGET_KINDS
        .iter()
        .flat_map(|kind| index.objects(kind))
        .filter(|target| asks_for(target, certificate, secret))
        .collect()
}
