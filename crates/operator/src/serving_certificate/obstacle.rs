//! What keeps a ServingCertificate from being looked at.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    objects::{CaSecret, CertificateRequirements, ServingSecret},
    rotation::Reason,
};

use super::{conflict::EXCLUSIVE, desired::DesiredCertificate};
use crate::install::status::ConditionUpdate;

/// The condition that sums up the others.
pub(super) const READY: &str = "Ready";

/// The condition of targets.
pub(super) const TRUSTED: &str = "Trusted";

/// The condition of endpoints.
pub(super) const SERVED: &str = "Served";

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

    /// What it does to conditions. Nobody looks at targets and endpoints while it is in the way, unless another install
    /// does; a server that was about to fail still is, and the alarm for it stays.
    pub(super) fn verdicts(&self, known: &[Condition]) -> Vec<(&'static str, ConditionUpdate)> {
        let fails = (self.condition, ConditionUpdate::fails(self.reason, &self.message));
        if self.condition != READY {
            return vec![fails];
        }
        let unseen = |condition| (condition, ConditionUpdate::unknown(self.reason, &self.message));
        let ready = known.iter().find(|condition| condition.type_ == READY);
        let is_alarming = ready.is_some_and(|ready| ready.reason == Reason::NotReloaded.to_string());
        let fails = (!is_alarming).then_some(fails);
        let unseen = [TRUSTED, SERVED].map(unseen);
        unseen.into_iter().chain(fails).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_install_keeps_is_looked_at_by_that_one() {
        let touched = |obstacle: &Unobservable| -> Vec<_> {
            let verdicts = obstacle.verdicts(&[]).into_iter();
            verdicts
                .map(|(condition, verdict)| (condition, verdict.status))
                .collect()
        };
        let conflict = Unobservable::conflict("here", "there");
        assert_eq!(touched(&conflict), [(EXCLUSIVE, "False")]);
        let foreign = Unobservable::new("ForeignSecret", "delete it");
        let expected = [(TRUSTED, "Unknown"), (SERVED, "Unknown"), (READY, "False")];
        assert_eq!(touched(&foreign), expected);
    }
}
