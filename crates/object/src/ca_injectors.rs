//! Other programs that write a `caBundle` where an annotation asks them to: cert-manager's cainjector, OpenShift's
//! service-ca, Cluster API. Two injectors of one target would overwrite each other without end.

/// An annotation that asks another program for a `caBundle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaInjector {
    /// The annotation on the target.
    pub annotation: &'static str,
    /// The program that answers it, as users know it.
    pub name: &'static str,
}

/// Every such annotation that is known; a program may have several.
pub const OTHER_CA_INJECTORS: &[CaInjector] = &[
    CaInjector {
        annotation: "cert-manager.io/inject-ca-from",
        name: "cert-manager",
    },
    CaInjector {
        annotation: "cert-manager.io/inject-ca-from-secret",
        name: "cert-manager",
    },
    CaInjector {
        annotation: "cert-manager.io/inject-apiserver-ca",
        name: "cert-manager",
    },
    CaInjector {
        annotation: "service.beta.openshift.io/inject-cabundle",
        name: "OpenShift's service-ca",
    },
    CaInjector {
        annotation: "service.alpha.openshift.io/inject-cabundle",
        name: "OpenShift's service-ca",
    },
    CaInjector {
        annotation: "runtime.cluster.x-k8s.io/inject-ca-from-secret",
        name: "Cluster API",
    },
];
