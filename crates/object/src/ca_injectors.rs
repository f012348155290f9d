//! Other programs that write a `caBundle` where an annotation asks them to. Two injectors of one target would overwrite each other
//! without end.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde_json::Value;
use thiserror::Error;

use crate::object;

/// A program that writes CA bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaInjector {
    /// cert-manager's cainjector.
    CertManager,
    /// OpenShift's service-ca.
    ServiceCa,
    /// Cluster API's core manager.
    ClusterApi,
}

/// Some of them.
pub type CaInjectors = BTreeSet<CaInjector>;

/// A name is that of no program that writes CA bundles.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} must be cert-manager, service-ca or cluster-api")]
pub struct UnknownCaInjector(String);

/// The group and version of cert-manager's Certificates.
pub const CERT_MANAGER_VERSION: &str = "cert-manager.io/v1";

/// Annotation of cert-manager on the Secret of a Certificate: its name.
pub const CERT_MANAGER_CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";

/// Annotation of cert-manager on a Secret: `true` lets targets name it.
pub const CERT_MANAGER_CONSENT: &str = "cert-manager.io/allow-direct-injection";

/// Annotation of cert-manager: the Certificate, as `<namespace>/<name>`, in whose Secret the CA is.
pub const CERT_MANAGER_CERTIFICATE: &str = "cert-manager.io/inject-ca-from";

/// Annotation of cert-manager: the Secret, as `<namespace>/<name>`, in which the CA is.
pub const CERT_MANAGER_SECRET: &str = "cert-manager.io/inject-ca-from-secret";

/// Annotation of cert-manager: `true` asks for the API server's CA.
pub const CERT_MANAGER_API_SERVER: &str = "cert-manager.io/inject-apiserver-ca";

/// Annotations of OpenShift, now and before: `true` asks for the CA of the Service that is called.
pub const SERVICE_CA: [&str; 2] = [
    "service.beta.openshift.io/inject-cabundle",
    "service.alpha.openshift.io/inject-cabundle",
];

/// Annotations of OpenShift on a Service, now and before: the Secret that is to get a serving certificate.
pub const SERVICE_CA_SERVING_CERT: [&str; 2] = [
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
];

/// Annotation of Cluster API: the Secret, as `<namespace>/<name>`, in which the CA is.
pub const CLUSTER_API_SECRET: &str = "runtime.cluster.x-k8s.io/inject-ca-from-secret";

// === impl CaInjector ===

impl CaInjector {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::CertManager, Self::ServiceCa, Self::ClusterApi];

    /// As it is given to flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CertManager => "cert-manager",
            Self::ServiceCa => "service-ca",
            Self::ClusterApi => "cluster-api",
        }
    }

    /// The annotations by which targets ask it.
    pub const fn annotations(self) -> &'static [&'static str] {
        match self {
            Self::CertManager => &[
                CERT_MANAGER_SECRET,
                CERT_MANAGER_CERTIFICATE,
                CERT_MANAGER_API_SERVER,
            ],
            Self::ServiceCa => &SERVICE_CA,
            Self::ClusterApi => &[CLUSTER_API_SECRET],
        }
    }

    /// The groups whose kinds it injects into.
    pub const fn groups(self) -> &'static [&'static str] {
        match self {
            Self::CertManager => &[
                "admissionregistration.k8s.io",
                "apiextensions.k8s.io",
                "apiregistration.k8s.io",
            ],
            Self::ServiceCa => &[
                "",
                "admissionregistration.k8s.io",
                "apiextensions.k8s.io",
                "apiregistration.k8s.io",
            ],
            Self::ClusterApi => &["runtime.cluster.x-k8s.io"],
        }
    }

    /// The namespaces and the name of the Lease by which it elects its leader, as its manifests have it. In other namespaces anybody
    /// may hold one of that name.
    pub const fn leases(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::CertManager => (
                &["kube-system", "cert-manager"],
                "cert-manager-cainjector-leader-election",
            ),
            Self::ServiceCa => (&["openshift-service-ca"], "service-ca-controller-lock"),
            Self::ClusterApi => (&["capi-system"], "controller-leader-election-capi"),
        }
    }

    /// The field managers as which it writes, now and in earlier releases: what its user agent begins with.
    pub const fn field_managers(self) -> &'static [&'static str] {
        match self {
            Self::CertManager => &["cert-manager-cainjector", "cainjector"],
            Self::ServiceCa => &["service-ca-operator"],
            Self::ClusterApi => &["manager"],
        }
    }

    /// The annotation by which `target` asks it, if it does, and is of a kind that it injects into.
    pub fn asked_by(self, target: &Value) -> Option<&'static str> {
        let says = |name| object::annotation(target, name).filter(|value| !value.is_empty());
        let mut annotations = self.annotations().iter();
        let annotation = annotations.find(|name| says(name).is_some_and(|value| value != "false"))?;
        let (group, _) = object::group_and_version(object::text(target, "/apiVersion")?);
        self.groups().contains(&group).then_some(*annotation)
    }
}

impl fmt::Display for CaInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CaInjector {
    type Err = UnknownCaInjector;

    fn from_str(name: &str) -> Result<Self, UnknownCaInjector> {
        let mut all = Self::ALL.into_iter();
        all.find(|injector| injector.name() == name)
            .ok_or_else(|| UnknownCaInjector(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_as_it_is_printed() {
        for injector in CaInjector::ALL {
            assert_eq!(injector.to_string().parse(), Ok(injector));
        }
        assert_eq!(
            "cainjector".parse::<CaInjector>().unwrap_err().to_string(),
            "\"cainjector\" must be cert-manager, service-ca or cluster-api"
        );
    }
}
