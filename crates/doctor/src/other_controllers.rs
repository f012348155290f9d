//! Other programs whose work touches that of Windlass, by the CustomResourceDefinitions that they bring.

use std::collections::BTreeSet;

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// A CustomResourceDefinition, whose it is, and what to know.
const OTHER_CONTROLLERS: [(&str, &str, &str); 11] = [
    (
        "certificates.cert-manager.io",
        "cert-manager",
        "it keeps what it injects; windlass install --adopt-from cert-manager/CERTIFICATE takes a server over without a failed call",
    ),
    (
        "clusterserviceversions.operators.coreos.com",
        "OLM v0",
        "it puts back what it has installed; windlass install --adopt-from olm/CLUSTERSERVICEVERSION has it let go first",
    ),
    (
        "clusterextensions.olm.operatorframework.io",
        "OLM v1",
        "do not install a bundle by both: each puts back what the other changes",
    ),
    (
        "servicecas.operator.openshift.io",
        "OpenShift's service-ca",
        "it keeps what it injects; windlass run --answer-annotations-of=service-ca stands in for it once it is stopped",
    ),
    (
        "extensionconfigs.runtime.cluster.x-k8s.io",
        "Cluster API",
        "its ExtensionConfigs are targets like others; have either of the two inject into one",
    ),
    (
        "resourceinterpretercustomizations.config.karmada.io",
        "Karmada",
        "Windlass asks its customizations and interpreter webhooks about objects of bundles",
    ),
    (
        "constrainttemplates.templates.gatekeeper.sh",
        "Gatekeeper",
        "exempt the namespace of Windlass, or it cannot renew its Lease while Gatekeeper is down",
    ),
    (
        "clusterpolicies.kyverno.io",
        "Kyverno",
        "exempt the namespace of Windlass, or it cannot renew its Lease while Kyverno is down",
    ),
    (
        "applications.argoproj.io",
        "Argo CD",
        "leave caBundle and spec.conversion out of what it applies, or it puts old ones back",
    ),
    (
        "kustomizations.kustomize.toolkit.fluxcd.io",
        "Flux",
        "leave caBundle and spec.conversion out of what it applies, or it puts old ones back",
    ),
    (
        "helmreleases.helm.toolkit.fluxcd.io",
        "Flux's Helm controller",
        "leave caBundle and spec.conversion out of what it applies, or it puts old ones back",
    ),
];

/// Who is here, by the names of all CustomResourceDefinitions.
pub fn other_controllers(definitions: &BTreeSet<&str>) -> Vec<DoctorFinding> {
    OTHER_CONTROLLERS
        .iter()
        .filter(|(definition, ..)| definitions.contains(definition))
        .map(|(_, name, advice)| DoctorCheck::OtherController.info(*name, format!("is here: {advice}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_controllers_are_found_by_their_crds() {
        let found = other_controllers(&["applications.argoproj.io", "widgets.example.com"].into());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subject, "Argo CD");
    }
}
