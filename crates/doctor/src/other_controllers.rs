//! Other controllers that interact with Windlass, recognized by their CustomResourceDefinitions.

use std::collections::BTreeSet;

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// Name of a CustomResourceDefinition, its controller, and advice.
const OTHER_CONTROLLERS: [(&str, &str, &str); 11] = [
    (
        "certificates.cert-manager.io",
        "cert-manager",
        "it keeps what it injects; windlass install --adopt-from cert-manager/CERTIFICATE migrates a server without failed calls",
    ),
    (
        "clusterserviceversions.operators.coreos.com",
        "OLM v0",
        "it restores what it installed; windlass install --adopt-from olm/CLUSTERSERVICEVERSION makes it release the operator first",
    ),
    (
        "clusterextensions.olm.operatorframework.io",
        "OLM v1",
        "do not install a bundle with both: each reverts changes of the other",
    ),
    (
        "servicecas.operator.openshift.io",
        "OpenShift's service-ca",
        "it keeps what it injects; once it is stopped, windlass run --answer-annotations-of=service-ca replaces it",
    ),
    (
        "extensionconfigs.runtime.cluster.x-k8s.io",
        "Cluster API",
        "its ExtensionConfigs can be targets; let only one of the two inject into each",
    ),
    (
        "resourceinterpretercustomizations.config.karmada.io",
        "Karmada",
        "Windlass calls its customizations and interpreter webhooks for objects of bundles",
    ),
    (
        "constrainttemplates.templates.gatekeeper.sh",
        "Gatekeeper",
        "exempt the namespace of Windlass, or Windlass cannot renew its Lease while Gatekeeper is down",
    ),
    (
        "clusterpolicies.kyverno.io",
        "Kyverno",
        "exempt the namespace of Windlass, or Windlass cannot renew its Lease while Kyverno is down",
    ),
    (
        "applications.argoproj.io",
        "Argo CD",
        "exclude caBundle and spec.conversion from what it applies, or it restores old ones",
    ),
    (
        "kustomizations.kustomize.toolkit.fluxcd.io",
        "Flux",
        "exclude caBundle and spec.conversion from what it applies, or it restores old ones",
    ),
    (
        "helmreleases.helm.toolkit.fluxcd.io",
        "Flux's Helm controller",
        "exclude caBundle and spec.conversion from what it applies, or it restores old ones",
    ),
];

/// Finds other controllers by the names of all CustomResourceDefinitions.
pub fn other_controllers(definitions: &BTreeSet<&str>) -> Vec<DoctorFinding> {
    OTHER_CONTROLLERS
        .iter()
        .filter(|(definition, ..)| definitions.contains(definition))
        .map(|(_, name, advice)| DoctorCheck::OtherController.info(*name, format!("is installed: {advice}")))
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
