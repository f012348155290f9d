//! CA certificates that targets contain when Windlass takes over from another CA injector. While an issuer
//! changes its CA, targets also contain the previous CA, for servers that still use their old certificate.

use std::collections::BTreeSet;

use windlass_cluster::Index;
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{CaBundle, InjectionScope, last_injector},
    pki::Certificate,
};

use super::requests::InjectionRequests;

/// Returns the CA certificates that are in all targets of `source` that the replaced injector wrote last. A
/// certificate in only some of them is skipped, so that the other targets do not start to trust it.
pub(super) fn common_previous_cas(
    source: &ObjectKey,
    requests: &InjectionRequests,
    index: &Index,
) -> BTreeSet<Certificate> {
    let kinds = index.target_kinds();
    let places = InjectionScope::everything().with_kinds(kinds.clone());
    let mut common: Option<BTreeSet<Certificate>> = None;
    for target in requests.targets(source).filter_map(|key| index.find(key)) {
        if last_injector(&target, kinds.replaced_injectors()).is_none() {
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
    fn certificates_that_all_injected_targets_contain_are_taken_over() {
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
            let index = Index::with_replaced_injectors(CaInjectors::from([CaInjector::CertManager]));
            let watch = Watch::all(kinds::API_SERVICE);
            for (name, (manager, carried)) in ["a", "b"].into_iter().zip(&targets) {
                index.apply(&watch, target(name, manager, carried));
            }
            let requests = InjectionRequests::from_index(&index, "windlass-system", |_, _| {});
            let source = kinds::SECRET.object(Some("n"), "ca");
            let expected: BTreeSet<_> = expected.into_iter().cloned().collect();
            assert_eq!(
                common_previous_cas(&source, &requests, &index),
                expected,
                "{targets:?}"
            );
        }
    }
}
