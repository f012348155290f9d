//! Conflicts between two installations of Windlass in one cluster. Each keeps its CAs in its own namespace,
//! so only one of them may manage a ServingCertificate. Otherwise each would forever replace what the other
//! issued.
//!
//! The Secret names the installation that wrote it, and the status the one that reported last. If another
//! installation is named, this one leaves the certificate alone while the other has CAs for it and renews its
//! Lease. It reports that in a separate condition, because the other installation keeps writing Ready.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use tokio::time::Instant;
use windlass_cluster::kinds;
use windlass_object::{names, object, rfc1123};
use windlass_trust::objects::CaSecret;

use super::{desired::DesiredCertificate, error::ServingCertificateError, reconciler::CertificateReconciler};
use crate::controllers::Controllers;

/// The condition that reports that another installation manages the certificate.
pub(super) const EXCLUSIVE: &str = "Exclusive";

/// How long a reported conflict counts. The other installation repeats its report as long as the conflict
/// lasts.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

impl CertificateReconciler {
    /// Returns the namespace of another installation that manages this certificate.
    pub(super) async fn conflicting_namespace(
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
        let is_active = self.is_active(other, desired).await?;
        Ok(is_active.then(|| other.to_owned()))
    }

    /// Reports whether the installation in `namespace` has CAs for a certificate and renews a Lease.
    async fn is_active(
        &self,
        namespace: &str,
        desired: &DesiredCertificate,
    ) -> Result<bool, ServingCertificateError> {
        let cluster = &self.context.cluster;
        let authority = cluster.read(&CaSecret::key(namespace, &desired.key)).await?;
        let leases = cluster.list(&kinds::LEASE, Some(namespace), None).await?;
        // The controllers of an installation may run in separate processes.
        let halves = [Controllers::DEFAULT, Controllers::CERTIFICATES].map(Controllers::lease);
        let leases = leases.iter().filter(|lease| {
            let name = object::text(lease, "/metadata/name");
            name.is_some_and(|name| halves.contains(&name))
        });
        let versions: Vec<_> = leases
            .filter_map(|lease| object::text(lease, "/metadata/resourceVersion"))
            .collect();
        if authority.is_none() || versions.is_empty() {
            self.other_installs.forget(namespace);
            return Ok(false);
        }
        Ok(self
            .other_installs
            .is_renewed(namespace, &versions.join(","), Instant::now()))
    }

    /// Returns the known conditions without an outdated conflict: this installation has taken over, or the
    /// other one no longer reports it.
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
