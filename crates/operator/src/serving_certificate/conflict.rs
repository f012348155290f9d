//! Two installs of Windlass in one cluster: the CAs of each are in its own namespace, so that each ServingCertificate must
//! be kept by one of them, or each replaces what the other issued for ever.
//!
//! The Secret names the install that wrote it, and the status the one that reported last. Who finds another name there
//! leaves the certificate alone while that install has CAs for it and renews its Lease. It says so in a condition of its
//! own, because the other goes on saying whether the certificate is ready.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use tokio::time::Instant;
use windlass_cluster::kinds;
use windlass_object::{names, object, rfc1123};
use windlass_trust::objects::CaSecret;

use super::{desired::DesiredCertificate, error::ServingCertificateError, reconciler::CertificateReconciler};
use crate::controllers::Controllers;

/// The condition that says that another install keeps the certificate.
pub(super) const EXCLUSIVE: &str = "Exclusive";

/// How long a conflict is believed that another install has reported. It reports it again while it is there.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

// === impl CertificateReconciler ===

impl CertificateReconciler {
    /// The namespace of another install that keeps this certificate, if there is one.
    pub(super) async fn other_keeper(
        &self,
        desired: &DesiredCertificate,
        serving: Option<&Value>,
    ) -> Result<Option<String>, ServingCertificateError> {
        let named = serving.and_then(|secret| object::annotation(secret, names::OPERATOR_NAMESPACE));
        let named = named.or(desired.status.operator_namespace.as_deref());
        let Some(other) = named.filter(|other| *other != self.context.namespace && rfc1123::is_label(other))
        else {
            return Ok(None);
        };
        let works = self.works(other, desired).await?;
        Ok(works.then(|| other.to_owned()))
    }

    /// Whether the install in a namespace has CAs for a certificate, and somebody renews its Lease.
    async fn works(
        &self,
        namespace: &str,
        desired: &DesiredCertificate,
    ) -> Result<bool, ServingCertificateError> {
        let cluster = &self.context.cluster;
        let authority = cluster.read(&CaSecret::key(namespace, &desired.key)).await?;
        let leases = cluster.list(&kinds::LEASE, Some(namespace), None).await?;
        // Its halves may run in processes of their own.
        let halves = [Controllers::DEFAULT, Controllers::CERTIFICATES].map(Controllers::lease);
        let leases = leases.iter().filter(|lease| {
            let name = object::text(lease, "/metadata/name");
            name.is_some_and(|name| halves.contains(&name))
        });
        let versions: Vec<_> = leases
            .filter_map(|lease| object::text(lease, "/metadata/resourceVersion"))
            .collect();
        if authority.is_none() || versions.is_empty() {
            self.neighbours.forget(namespace);
            return Ok(false);
        }
        Ok(self
            .neighbours
            .renews(namespace, &versions.join(","), Instant::now()))
    }

    /// The conditions as they are known, without a conflict that is over: this install has taken over, or the other one
    /// does not report it any more.
    pub(super) fn without_old_conflicts(&self, desired: &DesiredCertificate) -> Vec<Condition> {
        let status = &desired.status;
        let has_taken_over = status.operator_namespace.as_ref() != Some(&self.context.namespace);
        let now = self.context.clock.now();
        let is_old = |condition: &Condition| {
            has_taken_over || now.duration_since(condition.last_transition_time.0) > REPORTED_WITHIN
        };
        let conditions = status.conditions.iter();
        conditions
            .filter(|condition| condition.type_ != EXCLUSIVE || !is_old(condition))
            .cloned()
            .collect()
    }
}
