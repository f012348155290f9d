//! The desired state of a ServingCertificate.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::{ServingCertificate, ServingCertificateSpec, ServingCertificateStatus};
use windlass_cluster::keys;
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    objects::CertificateRequirements,
    pki::{DnsNames, InvalidDnsNames},
    rotation::Timing,
};

use super::{
    error::{ReadCertificateError, ServingCertificateError},
    reconciler::CertificateReconciler,
    secrets::Secrets,
};

/// The desired state of a ServingCertificate.
pub(super) struct DesiredCertificate {
    pub(super) key: ObjectKey,
    pub(super) object: Arc<Value>,
    pub(super) spec: ServingCertificateSpec,
    /// Last known status.
    pub(super) status: ServingCertificateStatus,
    /// The value of `windlass.dev/rotate`.
    pub(super) request: Option<String>,
}

impl DesiredCertificate {
    pub(super) fn read(key: ObjectKey, object: Arc<Value>) -> Result<Self, ReadCertificateError> {
        let certificate: ServingCertificate = serde_json::from_value(Value::clone(&object))?;
        let request = object::annotation(&object, names::ROTATE).map(str::to_owned);
        Ok(Self {
            key,
            object,
            spec: certificate.spec,
            status: certificate.status.unwrap_or_default(),
            request: request.filter(|value| !value.is_empty()),
        })
    }

    pub(super) fn namespace(&self) -> &str {
        self.key.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        object::text(&self.object, "/metadata/uid").unwrap_or_default()
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
    }

    /// DNS names of the certificate.
    pub(super) fn names(&self) -> Result<DnsNames, InvalidDnsNames> {
        DnsNames::for_service(&self.spec.service_name, self.namespace(), &self.spec.dns_names)
    }

    /// Returns the requirements for its Secrets, for a certificate with `names`.
    pub(super) fn requirements<'a>(&'a self, names: &'a DnsNames) -> CertificateRequirements<'a> {
        CertificateRequirements {
            certificate: &self.key,
            uid: self.uid(),
            secret_name: &self.spec.secret_name,
            names,
            algorithm: keys::algorithm(&self.spec.private_key),
        }
    }

    /// Returns the name of the Secret if targets may request its `ca.crt` by that name.
    pub(super) fn requestable_secret_name(&self, secrets: &Secrets) -> Option<&str> {
        secrets
            .allow_direct_injection
            .then_some(self.spec.secret_name.as_str())
    }

    /// Returns the durations of its rotation.
    pub(super) fn timing(&self, base: &Timing) -> Timing {
        Timing {
            leaf_life: self.spec.duration.0,
            authority_life: self.spec.ca.duration.0,
            ..base.clone()
        }
    }
}

impl CertificateReconciler {
    /// Returns the desired state of a ServingCertificate, or `None` if it does not exist or is being deleted.
    pub(super) fn desired(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<DesiredCertificate>, ServingCertificateError> {
        let object = self.context.index.find(key);
        let object = object.filter(|object| !object::is_terminating(object));
        Ok(object
            .map(|object| DesiredCertificate::read(key.clone(), object))
            .transpose()?)
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;

    use super::*;
    use windlass_api::{BundleDeployment, ServingCertificate};
    use windlass_object::GoDuration;

    #[test]
    fn admission_rejects_lifetimes_that_are_too_short_to_rotate() {
        let least = GoDuration(Timing::default().shortest_leaf_life());
        for crd in [ServingCertificate::crd(), BundleDeployment::crd()] {
            let schema = serde_json::to_string(&crd).unwrap();
            let rule = format!("duration(self.duration) >= duration('{least}')");
            assert!(schema.contains(&rule), "no {rule}");
            assert!(schema.contains(&format!("duration must be at least {least}:")));
        }
    }
}
