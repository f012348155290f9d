//! Reads the objects that request the trust bundle of a ServingCertificate.

use serde_json::Value;
use windlass_object::ObjectKey;

use super::certificate_store::CertificateStore;
use crate::{
    injection::{BundleReader, CaBundle, CaRequests, Holder, InjectionScope},
    rotation,
};

/// Reads a target, or returns `None` if it calls no server that the trust bundle verifies.
///
/// `id` names the target, and `trust` is the desired trust bundle.
pub fn read_target(
    id: &ObjectKey,
    target: &Value,
    scope: &InjectionScope,
    trust: &rotation::TrustSet,
    certificates: &mut CertificateStore,
) -> Option<rotation::Target> {
    let carried: Vec<_> = scope
        .holders(target)
        .map(|holder| read_bundle(&holder, certificates))
        .collect();
    if carried.is_empty() {
        return None;
    }
    Some(rotation::Target {
        id: id.clone(),
        bundle: common_bundle(&carried, trust),
        last_written: None,
        refused: CaRequests::from_object(target, scope.kinds())
            .err()
            .map(|error| error.to_string()),
        contested: None,
        is_file: scope.reader(target) == BundleReader::Files,
    })
}

fn read_bundle(holder: &Holder<'_>, certificates: &mut CertificateStore) -> Option<rotation::TrustSet> {
    // Almost all targets have the same bundle.
    certificates.parse_bundle(holder.text()?, |certificates| {
        let CaBundle::Read(reading) = holder.ca_bundle() else {
            return None;
        };
        let roots = reading.certificates.iter();
        let roots: rotation::TrustSet = roots.map(|root| certificates.insert(root)).collect();
        (reading.is_usable() && !roots.is_empty()).then_some(roots)
    })
}

/// Returns the certificates that all places of a target have. If these equal the desired ones but one place
/// has more, returns that place's certificates, so that the difference is repaired.
fn common_bundle(
    carried: &[Option<rotation::TrustSet>],
    trust: &rotation::TrustSet,
) -> Option<rotation::TrustSet> {
    let bundles: Vec<_> = carried.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let (first, others) = bundles.split_first()?;
    let common: rotation::TrustSet = first
        .iter()
        .filter(|root| others.iter().all(|bundle| bundle.contains(root)))
        .copied()
        .collect();
    let different = bundles.iter().find(|bundle| **bundle != trust);
    match different {
        Some(different) if common == *trust => Some((*different).clone()),
        _ => Some(common).filter(|common| !common.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{objects::summary, pki::sample, trust_bundle::TrustBundle};

    fn target(bundles: &[Option<&TrustBundle>]) -> Value {
        let webhooks: Vec<_> = bundles
            .iter()
            .enumerate()
            .map(|(index, bundle)| {
                let mut config = json!({"service": {"namespace": "system", "name": "hook"}});
                if let Some(bundle) = bundle {
                    config["caBundle"] = CaBundle::encode(bundle).into();
                }
                json!({"name": format!("{index}.example.com"), "clientConfig": config})
            })
            .collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w", "annotations": {"windlass.dev/inject-ca-from": "system/hook"}},
            "webhooks": webhooks,
        })
    }

    #[test]
    fn a_target_trusts_what_all_its_webhooks_trust() {
        let mut certificates = CertificateStore::default();
        let roots = [1, 2, 3].map(|generation| sample::authority(generation).certificate().clone());
        let bundle = |count: usize| TrustBundle::new(roots[..count].iter().cloned()).unwrap();
        let (one, both, all) = (bundle(1), bundle(2), bundle(3));
        let mut summary = |bundle: &TrustBundle| -> rotation::TrustSet {
            bundle
                .certificates()
                .iter()
                .map(|root| certificates.insert(root))
                .collect()
        };
        let (one_seen, both_seen, all_seen) = (summary(&one), summary(&both), summary(&all));
        for (bundles, expected) in [
            (vec![None], None),
            (vec![Some(&both), None], None),
            (vec![Some(&both), Some(&both)], Some(&both_seen)),
            (vec![Some(&both), Some(&one)], Some(&one_seen)),
            (vec![Some(&both), Some(&all)], Some(&all_seen)),
        ] {
            let target = target(&bundles);
            let read = read_target(
                &ObjectKey::from_object(&target).unwrap(),
                &target,
                &InjectionScope::everything().with_servers(sample::names()),
                &both_seen,
                &mut CertificateStore::default(),
            );
            assert_eq!(read.unwrap().bundle.as_ref(), expected, "{bundles:?}");
        }
    }

    #[test]
    fn a_bundle_shared_by_targets_is_parsed_once() {
        let mut certificates = CertificateStore::default();
        let bundles = [1, 2].map(|generation| {
            let root = sample::authority(generation).certificate().clone();
            TrustBundle::new([root]).unwrap()
        });
        let trust = rotation::TrustSet::default();
        for bundle in bundles.iter().cycle().take(100) {
            let target = target(&[Some(bundle), Some(bundle)]);
            let read = read_target(
                &ObjectKey::from_object(&target).unwrap(),
                &target,
                &InjectionScope::everything().with_servers(sample::names()),
                &trust,
                &mut certificates,
            );
            let roots: rotation::TrustSet = bundle.certificates().iter().map(summary).collect();
            assert_eq!(read.unwrap().bundle, Some(roots));
        }
        assert_eq!(certificates.parsed_bundle_count(), 2);
    }

    #[test]
    fn objects_that_call_other_servers_are_not_targets() {
        let mut target = target(&[None]);
        target["webhooks"][0]["clientConfig"]["service"]["name"] = "other".into();
        let trust = rotation::TrustSet::default();
        assert_eq!(
            read_target(
                &ObjectKey::from_object(&target).unwrap(),
                &target,
                &InjectionScope::everything().with_servers(sample::names()),
                &trust,
                &mut CertificateStore::default()
            ),
            None
        );
    }
}
