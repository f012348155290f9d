//! The targets of a ServingCertificate.

use serde_json::Value;
use windlass_cluster::{Index, SeenObjects};
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{CaRequests, CaSource, CaSources, Consent, InjectionScope, TargetKinds},
    pki::DnsNames,
};

/// Returns the objects that request the trust bundle of a ServingCertificate, or `ca.crt` of its Secret by
/// the Secret's name.
pub(super) fn requesting_targets(
    index: &Index,
    certificate: &ObjectKey,
    secret: Option<&str>,
) -> SeenObjects {
    sources(certificate, secret)
        .flat_map(|source| index.targets(&source))
        .collect()
}

/// Reports whether `target` is one of [`requesting_targets`].
pub(super) fn is_requesting(
    target: &Value,
    certificate: &ObjectKey,
    secret: Option<&str>,
    kinds: &TargetKinds,
) -> bool {
    let requests = CaRequests::from_valid_annotations(target, kinds);
    let sets = requests.sets();
    sources(certificate, secret).any(|source| sets.contains(&CaSources::from([source])))
}

/// Returns the fields that get the trust bundle: fields of targets that request it, for servers with these
/// names.
pub(super) fn scope(certificate: &ObjectKey, secret: Option<&str>, names: &DnsNames) -> InjectionScope {
    let requested = sources(certificate, secret).map(|source| CaSources::from([source]));
    InjectionScope::requesting(requested).with_servers(names.clone())
}

fn sources(certificate: &ObjectKey, secret: Option<&str>) -> impl Iterator<Item = CaSource> {
    let namespace = || certificate.namespace.clone().unwrap_or_default();
    let by_certificate = CaSource::ServingCertificate {
        namespace: namespace(),
        name: certificate.name.clone(),
    };
    // Secrets of Windlass allow every form of request for their trust bundle.
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
    fn targets_request_the_bundle_by_certificate_or_by_secret() {
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
                let is_found = ObjectKey::from_object(&target).is_some_and(|key| found.contains_key(&key));
                let is_requesting = is_requesting(&target, &certificate, secret, &TargetKinds::default());
                assert_eq!(is_requesting, is_found, "{target}");
            }
        }
    }
}
