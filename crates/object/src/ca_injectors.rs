//! Other CA injectors: programs that write a `caBundle` when an annotation requests it. Two injectors of one
//! target would overwrite each other forever.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde_json::Value;
use thiserror::Error;

use crate::object;

/// A CA injector that Windlass detects and can replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaInjector {
    /// cert-manager's cainjector.
    CertManager,
    /// OpenShift's service-ca.
    ServiceCa,
    /// Cluster API's core manager.
    ClusterApi,
}

/// Several CA injectors, each once.
pub type CaInjectors = BTreeSet<CaInjector>;

/// The name of a CA injector is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} must be cert-manager, service-ca or cluster-api")]
pub struct UnknownCaInjector(String);

/// The group and version of cert-manager's Certificates.
pub const CERT_MANAGER_VERSION: &str = "cert-manager.io/v1";

/// Annotation of cert-manager on the Secret of a Certificate: the Certificate's name.
pub const CERT_MANAGER_CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";

/// Annotation of cert-manager on a Secret: `true` allows targets to reference it.
pub const CERT_MANAGER_CONSENT: &str = "cert-manager.io/allow-direct-injection";

/// Annotation of cert-manager: the Certificate, as `<namespace>/<name>`, whose Secret holds the CA.
pub const CERT_MANAGER_CERTIFICATE: &str = "cert-manager.io/inject-ca-from";

/// Annotation of cert-manager: the Secret, as `<namespace>/<name>`, that holds the CA.
pub const CERT_MANAGER_SECRET: &str = "cert-manager.io/inject-ca-from-secret";

/// Annotation of cert-manager: `true` requests the CA of the API server.
pub const CERT_MANAGER_API_SERVER: &str = "cert-manager.io/inject-apiserver-ca";

/// Annotations of OpenShift, current and deprecated: `true` requests the CA of the called Service.
pub const SERVICE_CA: [&str; 2] = [
    "service.beta.openshift.io/inject-cabundle",
    "service.alpha.openshift.io/inject-cabundle",
];

/// Annotations of OpenShift on a Service, current and deprecated: the Secret to write a serving certificate
/// to.
pub const SERVICE_CA_SERVING_CERT: [&str; 2] = [
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
];

/// Annotation of Cluster API: the Secret, as `<namespace>/<name>`, that holds the CA.
pub const CLUSTER_API_SECRET: &str = "runtime.cluster.x-k8s.io/inject-ca-from-secret";

impl CaInjector {
    /// All injectors.
    pub const ALL: [Self; 3] = [Self::CertManager, Self::ServiceCa, Self::ClusterApi];

    /// Returns the name that command-line flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CertManager => "cert-manager",
            Self::ServiceCa => "service-ca",
            Self::ClusterApi => "cluster-api",
        }
    }

    /// Returns the annotations by which targets request injection.
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

    /// Returns the API groups whose kinds it injects into.
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

    /// Returns the namespaces and the name of its leader election Lease, as in its manifests. In other
    /// namespaces any user may hold a Lease of that name.
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

    /// Returns its field managers, of this and earlier releases: the prefixes of its user agent.
    pub const fn field_managers(self) -> &'static [&'static str] {
        match self {
            Self::CertManager => &["cert-manager-cainjector", "cainjector"],
            Self::ServiceCa => &["service-ca-operator"],
            Self::ClusterApi => &["manager"],
        }
    }

    /// Returns the annotation by which `target` requests this injector, if `target` is of a kind that it
    /// injects into.
    pub fn annotation_on(self, target: &Value) -> Option<&'static str> {
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
    fn every_name_is_parsed_back() {
        for injector in CaInjector::ALL {
            assert_eq!(injector.to_string().parse(), Ok(injector));
        }
        assert_eq!(
            "cainjector".parse::<CaInjector>().unwrap_err().to_string(),
            "\"cainjector\" must be cert-manager, service-ca or cluster-api"
        );
    }
}
