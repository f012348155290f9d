//! What another CA injector leaves behind for whoever stands in for it: while an issuer changes its CA, targets carry the one before,
//! too, for servers that have not read what is new.

use std::collections::BTreeSet;

use windlass_cluster::Index;
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{CaBundle, Reach, last_injector},
    pki::Certificate,
};

use super::requests::InjectionRequests;

/// The CA certificates that all targets carry that ask for `source`, and that the injector has written last which they ask. What one
/// of them alone carries is nothing that the others are to trust.
pub(super) fn handed_over(
    source: &ObjectKey,
    requests: &InjectionRequests,
    index: &Index,
) -> BTreeSet<Certificate> {
    let kinds = index.target_kinds();
    let places = Reach::everything().within(kinds.clone());
    let mut common: Option<BTreeSet<Certificate>> = None;
    for target in requests.targets(source).filter_map(|key| index.find(key)) {
        if last_injector(&target, kinds.answered()).is_none() {
            continue;
        }
        for holder in places.holders(&target) {
            let CaBundle::Read(reading) = holder.ca_bundle() else {
                continue;
            };
            let carried: BTreeSet<_> = reading.certificates.into_iter().collect();
            common = Some(match common {
                Some(common) => common.intersection(&carried).cloned().collect(),
                None => carried,
            });
        }
    }
    common.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::{Value, json};
    use windlass_cluster::{kinds, watch::Watch};
    use windlass_object::ca_injectors::{CERT_MANAGER_SECRET, CaInjector, CaInjectors};
    use windlass_trust::pki::sample;

    use super::*;

    fn target(name: &str, manager: &str, carried: &[&Certificate]) -> Value {
        let pem: String = carried.iter().map(|root| root.to_pem()).collect();
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": name, "annotations": {CERT_MANAGER_SECRET: "n/ca"},
                "managedFields": [{
                    "manager": manager, "operation": "Apply", "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": {"f:spec": {"f:caBundle": {}}},
                }],
            },
            "spec": {"service": {"namespace": "n", "name": "hook"}, "caBundle": STANDARD.encode(pem)},
        })
    }

    #[test]
    fn what_all_carry_that_the_injector_has_written_is_handed_over() {
        let [a, b, c] = &[1, 2, 3].map(|generation| sample::authority(generation).certificate().clone());
        for (targets, expected) in [
            (vec![("cert-manager-cainjector", vec![a, b])], vec![a, b]),
            (
                vec![
                    ("cert-manager-cainjector", vec![a, b]),
                    ("cert-manager-cainjector", vec![b]),
                ],
                vec![b],
            ),
            (
                vec![("cert-manager-cainjector", vec![a]), ("kubectl", vec![c])],
                vec![a],
            ),
            (vec![("kubectl", vec![a])], vec![]),
            (vec![], vec![]),
        ] {
            let index = Index::answering(CaInjectors::from([CaInjector::CertManager]));
            let watch = Watch::all(kinds::API_SERVICE);
            for (name, (manager, carried)) in ["a", "b"].into_iter().zip(&targets) {
                index.apply(&watch, target(name, manager, carried));
            }
            let requests = InjectionRequests::of_all(&index, "windlass-system", |_, _| {});
            let source = kinds::SECRET.object(Some("n"), "ca");
            let expected: BTreeSet<_> = expected.into_iter().cloned().collect();
            assert_eq!(handed_over(&source, &requests, &index), expected, "{targets:?}");
        }
    }
}
