//! Limits which CAs in `ca.crt` count as lost CAs of Windlass. Otherwise a user who can write the serving
//! Secret could make every target trust any CA, or more CAs than fit into a target.

use std::cmp::Reverse;

use super::certificate_store::CertificateStore;
use crate::{
    pki::{Certificate, DnsNames},
    rotation::{CaState, CertificateId, PublishedSecret},
};

/// How many CAs are adopted at a time: the current and the next one. A rotation stops adopting once three CAs
/// retire, and keeps an adopted CA for the lifetime of one serving certificate.
const MAX_ADOPTED: usize = 2;

/// Size limit of an adopted certificate, in bytes. An RSA 4096 certificate with 100 names has 4 KB.
const MAX_BYTES: usize = 4 << 10;

/// Removes from the observed `ca.crt` all CAs that are neither in the CA Secret nor adoptable. A `ca.crt`
/// with unknown CAs, none of them adoptable, counts as damaged and is rewritten.
pub fn limit_adoption(
    secret: &mut PublishedSecret,
    known: Option<&CaState>,
    names: &DnsNames,
    certificates: &CertificateStore,
) {
    let Some(bundle) = &secret.bundle else { return };
    let is_known = |root: &&CertificateId| known.is_some_and(|known| known.knows(root.key_id));
    let (known, unknown): (Vec<_>, Vec<_>) = bundle.iter().partition(is_known);
    let is_adoptable = |root: &&CertificateId| {
        let root = certificates.find(root);
        root.is_ok_and(|root| root.der().len() <= MAX_BYTES && signs_only_for(root, names))
    };
    let count = unknown.len();
    let mut adopted: Vec<_> = unknown.into_iter().filter(is_adoptable).collect();
    let signs_leaf = |root: &CertificateId| secret.leaf.is_some_and(|leaf| leaf.is_signed_by(root));
    adopted.sort_by_key(|root| Reverse((signs_leaf(root), root.validity.not_after)));
    adopted.truncate(MAX_ADOPTED);
    if adopted.len() == count {
        return;
    }
    let left = (!adopted.is_empty()).then(|| known.into_iter().chain(adopted).copied().collect());
    secret.bundle = left;
}

/// Reports whether a CA may sign for all of `names` and for no other name.
fn signs_only_for(authority: &Certificate, names: &DnsNames) -> bool {
    let subtrees = authority.permitted_dns_names().unwrap_or_default();
    let is_name = |subtree: &String| {
        names
            .iter()
            .any(|name| name.strip_prefix("*.").unwrap_or(name) == subtree)
    };
    authority.is_authority()
        && authority.permits(names)
        && !subtrees.is_empty()
        && subtrees.iter().all(is_name)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;
    use crate::pki::{CertificateAuthority, sample};

    fn ca_for(extra: &str) -> Certificate {
        let names = DnsNames::for_service("hook", "system", &[extra.to_owned()]).unwrap();
        let terms = sample::terms(sample::YEAR);
        let authority = CertificateAuthority::self_signed(&names, 1, sample::key(), &terms);
        authority.unwrap().certificate().clone()
    }

    /// A CA without name constraints.
    fn unconstrained_ca() -> Certificate {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Certificate::from_der(parameters.self_signed(&key).unwrap().der().to_vec()).unwrap()
    }

    /// Returns how many of `roots` remain in a bundle of them if `known` are in the CA Secret; `None` if the
    /// bundle is damaged.
    fn remaining(roots: &[&Certificate], known: &[&Certificate]) -> Option<usize> {
        let mut certificates = CertificateStore::default();
        let mut learn = |roots: &[&Certificate]| -> Vec<_> {
            roots.iter().map(|root| certificates.insert(root)).collect()
        };
        let state = CaState {
            retiring: learn(known),
            ..CaState::default()
        };
        let mut secret = PublishedSecret {
            bundle: Some(learn(roots).into_iter().collect()),
            ..PublishedSecret::default()
        };
        limit_adoption(&mut secret, Some(&state), &sample::names(), &certificates);
        secret.bundle.map(|bundle| bundle.iter().count())
    }

    #[test]
    fn only_a_ca_limited_to_the_same_names_is_adopted() {
        let own = [1, 2, 3, 4].map(|generation| sample::authority(generation).certificate().clone());
        let [a, b, c, d] = own.each_ref();
        let (other, any) = (ca_for("other.example.com"), unconstrained_ca());
        assert_eq!(remaining(&[a, b], &[a, b]), Some(2), "all are known");
        assert_eq!(
            remaining(&[&any, &other], &[&any, &other]),
            Some(2),
            "known CAs stay"
        );
        assert_eq!(remaining(&[a, b], &[]), Some(2));
        assert_eq!(remaining(&[a, b, c], &[a]), Some(3));
        assert_eq!(remaining(&[a, b, c, d], &[a]), Some(3), "at most two");
        assert_eq!(remaining(&[a, &any], &[a]), None);
        assert_eq!(remaining(&[a, &other], &[a]), None);
        assert_eq!(remaining(&[&any], &[]), None);
        assert_eq!(remaining(&[a, b, &any], &[a]), Some(2));
    }
}
