//! The objects that ask for the trust bundle of a ServingCertificate.

use serde_json::Value;
use windlass_cluster::{Index, SeenObjects};
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{CaRequests, CaSource, CaSources, Consent, Reach, TargetKinds},
    pki::DnsNames,
};

/// The objects that ask for the trust bundle of a ServingCertificate, or for `ca.crt` of its Secret by the Secret's
/// name.
pub(super) fn requesting_targets(
    index: &Index,
    certificate: &ObjectKey,
    secret: Option<&str>,
) -> SeenObjects {
    sources(certificate, secret)
        .flat_map(|source| index.targets(&source))
        .collect()
}

/// Whether `target` is one of [`requesting_targets`].
pub(super) fn is_requesting(
    target: &Value,
    certificate: &ObjectKey,
    secret: Option<&str>,
    kinds: &TargetKinds,
) -> bool {
    let requests = CaRequests::readable(target, kinds);
    let sets = requests.sets();
    sources(certificate, secret).any(|source| sets.contains(&CaSources::from([source])))
}

/// The places of targets that the trust bundle is for: those that ask for it, and call a server of these names.
pub(super) fn reach(certificate: &ObjectKey, secret: Option<&str>, names: &DnsNames) -> Reach {
    let asked = sources(certificate, secret).map(|source| CaSources::from([source]));
    Reach::asking(asked).calling(names.clone())
}

fn sources(certificate: &ObjectKey, secret: Option<&str>) -> impl Iterator<Item = CaSource> {
    let namespace = || certificate.namespace.clone().unwrap_or_default();
    let by_certificate = CaSource::ServingCertificate {
        namespace: namespace(),
        name: certificate.name.clone(),
    };
    // Ours let everybody have their trust bundle.
    let by_secret = secret.into_iter().flat_map(move |name| {
        Consent::ALL.map(|consent| CaSource::Secret {
            namespace: namespace(),
            name: name.to_owned(),
            consent,
        })
    });
    std::iter::once(by_certificate).chain(by_secret)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::{kinds, watch::Watch};
    use windlass_object::names;

    use super::*;

    #[test]
    fn targets_ask_by_the_certificate_or_by_its_secret() {
        let index = Index::new();
        let kind = kinds::API_SERVICE;
        for (name, annotations) in [
            ("a", json!({names::INJECT_CA_FROM: "n/hook"})),
            ("b", json!({names::INJECT_CA_FROM_SECRET: "n/hook-cert"})),
            (
                "c",
                json!({names::INJECT_CA_FROM: "n/other", names::INJECT_CA_FROM_SECRET: "n/hook-cert"}),
            ),
            (
                "d",
                json!({names::INJECT_CA_FROM: "n/hook", names::INJECT_CA_FROM_SECRET: "n/other"}),
            ),
            ("e", json!({names::INJECT_CA_FROM: "m/hook"})),
            ("f", json!({names::INJECT_CA_FROM: "hook"})),
            ("g", json!({names::INJECT_CA_FROM_SECRET: "n/hook"})),
        ] {
            let target = json!({
                "apiVersion": kind.api_version, "kind": kind.kind,
                "metadata": {"name": name, "annotations": annotations},
            });
            index.apply(&Watch::all(kind.clone()), target);
        }
        let certificate = kinds::SERVING_CERTIFICATE.object(Some("n"), "hook");
        for (secret, expected) in [(None, vec!["a", "d"]), (Some("hook-cert"), vec!["a", "b", "d"])] {
            let found = requesting_targets(&index, &certificate, secret);
            let names: Vec<_> = found.keys().map(|key| key.name.as_str()).collect();
            assert_eq!(names, expected);
            for target in index.objects(&kind) {
                let is_found = ObjectKey::of(&target).is_some_and(|key| found.contains_key(&key));
                let is_requesting = is_requesting(&target, &certificate, secret, &TargetKinds::default());
                assert_eq!(is_requesting, is_found, "{target}");
            }
        }
    }
}
