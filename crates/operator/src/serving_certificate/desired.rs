//! What a ServingCertificate asks for.

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

/// What a ServingCertificate asks for.
pub(super) struct DesiredCertificate {
    /// Which one.
    pub(super) key: ObjectKey,
    /// The whole object.
    pub(super) object: Arc<Value>,
    /// Its spec.
    pub(super) spec: ServingCertificateSpec,
    /// Its status as it was known last.
    pub(super) status: ServingCertificateStatus,
    /// The value of `windlass.dev/rotate`.
    pub(super) request: Option<String>,
}

// === impl DesiredCertificate ===

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

    /// Its namespace.
    pub(super) fn namespace(&self) -> &str {
        self.key.namespace.as_deref().unwrap_or_default()
    }

    /// Its uid.
    pub(super) fn uid(&self) -> &str {
        object::text(&self.object, "/metadata/uid").unwrap_or_default()
    }

    /// The generation of its spec.
    pub(super) fn generation(&self) -> Option<i64> {
        self.object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
    }

    /// The names that are served.
    pub(super) fn names(&self) -> Result<DnsNames, InvalidDnsNames> {
        DnsNames::of_service(&self.spec.service_name, self.namespace(), &self.spec.dns_names)
    }

    /// What it asks of its Secrets, given the names that are served.
    pub(super) fn requirements<'a>(&'a self, names: &'a DnsNames) -> CertificateRequirements<'a> {
        CertificateRequirements {
            certificate: &self.key,
            uid: self.uid(),
            secret_name: &self.spec.secret_name,
            names,
            algorithm: keys::algorithm(&self.spec.private_key),
        }
    }

    /// The Secret by whose name targets may ask for `ca.crt`.
    pub(super) fn secret_to_ask(&self, secrets: &Secrets) -> Option<&str> {
        secrets
            .allow_direct_injection
            .then_some(self.spec.secret_name.as_str())
    }

    /// The durations of its rotation.
    pub(super) fn timing(&self, base: &Timing) -> Timing {
        Timing {
            leaf_life: self.spec.duration.0,
            authority_life: self.spec.ca.duration.0,
            ..base.clone()
        }
    }
}

// === impl CertificateReconciler ===

impl CertificateReconciler {
    /// What a ServingCertificate asks for now; nothing, if it is gone or going.
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
    fn what_admission_refuses_is_what_a_rotation_could_not_do() {
        let least = GoDuration(Timing::default().shortest_leaf_life());
        for crd in [ServingCertificate::crd(), BundleDeployment::crd()] {
            let schema = serde_json::to_string(&crd).unwrap();
            let rule = format!("duration(self.duration) >= duration('{least}')");
            assert!(schema.contains(&rule), "no {rule}");
            assert!(schema.contains(&format!("duration must be at least {least}:")));
        }
    }
}
