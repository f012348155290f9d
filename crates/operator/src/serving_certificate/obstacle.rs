//! What keeps a ServingCertificate from being looked at.

use serde_json::Value;
use windlass_object::{ObjectKey, object};
use windlass_trust::objects::{CaSecret, CertificateRequirements, ServingSecret};

use super::{conflict::EXCLUSIVE, desired::DesiredCertificate};

/// The condition that sums up the others.
pub(super) const READY: &str = "Ready";

/// Why there is nothing to plan.
pub(super) struct Unobservable {
    /// The condition that does not hold.
    pub(super) condition: &'static str,
    /// In CamelCase, as the reason of a condition.
    pub(super) reason: &'static str,
    /// What is in the way, and what to do.
    pub(super) message: String,
}

// === impl Unobservable ===

impl Unobservable {
    /// It cannot be ready.
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            condition: READY,
            reason,
            message: message.into(),
        }
    }

    /// Another install keeps it, and says whether it is ready.
    pub(super) fn conflict(own_namespace: &str, keeper: &str) -> Self {
        Self {
            condition: EXCLUSIVE,
            reason: "OperatorConflict",
            message: format!(
                "the Windlass in namespace {keeper} keeps this certificate, and the one in {own_namespace} leaves it alone: remove one of them"
            ),
        }
    }

    fn terminating(object: &ObjectKey) -> Self {
        let message = format!("waiting for {object} to be deleted before recreating it");
        Self::new("SecretTerminating", message)
    }
}

/// Why the CA Secret must not be read.
pub(super) fn in_way_of_authorities(secret: &Value, desired: &DesiredCertificate) -> Option<Unobservable> {
    let key = ObjectKey::of(secret)?;
    if object::is_terminating(secret) {
        return Some(Unobservable::terminating(&key));
    }
    if !CaSecret::is_ours(secret, &desired.key) {
        let message = format!("{key} exists and was not created by Windlass: delete it");
        return Some(Unobservable::new("ForeignSecret", message));
    }
    CaSecret::objection(secret)
        .map(|objection| Unobservable::new("NewerVersion", format!("{key}: {objection}")))
}

/// Why the serving Secret must not be read.
pub(super) fn in_way_of_serving(
    secret: &Value,
    requirements: &CertificateRequirements<'_>,
) -> Option<Unobservable> {
    if object::is_terminating(secret) {
        return ObjectKey::of(secret).map(|key| Unobservable::terminating(&key));
    }
    ServingSecret::objection(secret, requirements).map(|message| Unobservable::new("ForeignSecret", message))
}
