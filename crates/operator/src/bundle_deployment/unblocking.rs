//! A webhook of the bundle itself keeps nobody from bringing its server back.

use serde_json::Value;
use tracing::warn;
use windlass_cluster::{apply::FieldOwner, endpoints, kinds, telemetry::chain};
use windlass_object::object;

use super::{
    halt::{BundleDeploymentError, Halt},
    objects::CALLER_KINDS,
    reconciler::BundleReconciler,
};
use crate::install::{
    status::{InstallOutcome, Milestone},
    traffic::CalledPort,
};

/// How the API server says that a webhook did not answer, before the name of the webhook (`toStatusErr` of
/// k8s.io/apiserver/pkg/admission/plugin/webhook).
const FAILED: &str = "failed calling webhook \"";

impl BundleReconciler {
    /// Disarms a webhook of the BundleDeployment itself if it caused `error` and its Service has no ready
    /// endpoint. It is armed again like after any install. Returns any other error unchanged.
    pub(super) async fn unblock(&self, owner: &FieldOwner, error: BundleDeploymentError) -> Halt {
        let message = chain(&error);
        let Some(webhook) = failed_webhook(&message) else {
            return Halt::Error(error);
        };
        let blocking = CALLER_KINDS
            .iter()
            .flat_map(|kind| self.owned(owner, kind))
            .find(|configuration| has_webhook(configuration, webhook) && self.is_dead(configuration));
        let Some(blocking) = blocking else {
            return Halt::Error(error);
        };
        let deleted = self.delete(&blocking, owner).await;
        self.note_disarmed(owner);
        if let Err(halt) = deleted {
            return halt;
        }
        warn!(bundle_deployment = owner.bundle_deployment, webhook, %message, "Disarmed a webhook that blocks its own bundle");
        let message = format!(
            "disarmed webhook {webhook}, which has no ready endpoint and blocks its own bundle; it is armed again when its server is ready: {message}"
        );
        let outcome = InstallOutcome::waiting(Milestone::Installed, "WebhookBlocksInstall", message);
        Halt::Later(outcome, self.timing.recheck)
    }

    /// Whether none of the Services that a webhook configuration calls has a ready endpoint.
    pub(super) fn is_dead(&self, configuration: &Value) -> bool {
        CalledPort::all_of(configuration).iter().all(|call| {
            let key = kinds::SERVICE.object(Some(&call.namespace), &call.service);
            let service = self.context.index.find(&key);
            service.is_none_or(|service| {
                endpoints::ready(&self.context.index, &service, Some(call.port)).is_empty()
            })
        })
    }
}

fn failed_webhook(message: &str) -> Option<&str> {
    let (_, after) = message.split_once(FAILED)?;
    after.split('"').next()
}

fn has_webhook(configuration: &Value, name: &str) -> bool {
    object::items(configuration, "/webhooks")
        .iter()
        .any(|webhook| object::text(webhook, "/name") == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_that_did_not_answer_is_named() {
        let refused = "cannot apply Deployment a/b: Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post \"https://s.a.svc:443/v\": no endpoints available for service \"s\"";
        assert_eq!(failed_webhook(refused), Some("v.example.com"));
        let denied = "admission webhook \"v.example.com\" denied the request: no";
        assert_eq!(failed_webhook(denied), None);
    }
}
