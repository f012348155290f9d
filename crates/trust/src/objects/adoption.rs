//! Which CAs of `ca.crt` may be taken for lost ones of ours. Whoever writes the serving Secret could have every target trust
//! any CA otherwise, or more of them than targets take.

use std::cmp::Reverse;

use super::certificate_store::CertificateStore;
use crate::{
    pki::{Certificate, DnsNames},
    rotation::{CaState, CertificateId, PublishedSecret},
};

/// How many are adopted at most at a time: the current CA and the next. A rotation adopts no more while three CAs retire, and
/// waits for what an adopted one may have signed for one life of a serving certificate.
const MOST: usize = 2;

/// The longest certificate that is adopted, in bytes. With 4096 bits of RSA and 100 names it has 4 KB.
const LONGEST: usize = 4 << 10;

/// Takes from `ca.crt`, as a rotation sees it, the CAs that are not in the CA Secret and may not be adopted. One that holds
/// others beside those of the CA Secret, and none to adopt, counts as damaged: it is written again.
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
        root.is_ok_and(|root| root.der().len() <= LONGEST && signs_only_for(root, names))
    };
    let count = unknown.len();
    let mut adopted: Vec<_> = unknown.into_iter().filter(is_adoptable).collect();
    let signs_leaf = |root: &CertificateId| secret.leaf.is_some_and(|leaf| leaf.is_signed_by(root));
    adopted.sort_by_key(|root| Reverse((signs_leaf(root), root.validity.not_after)));
    adopted.truncate(MOST);
    if adopted.len() == count {
        return;
    }
    let left = (!adopted.is_empty()).then(|| known.into_iter().chain(adopted).copied().collect());
    secret.bundle = left;
}

/// Whether a CA may sign for all of `names`, and for no others.
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

    fn of_names(extra: &str) -> Certificate {
        let names = DnsNames::of_service("hook", "system", &[extra.to_owned()]).unwrap();
        let terms = sample::terms(sample::YEAR);
        let authority = CertificateAuthority::self_signed(&names, 1, sample::key(), &terms);
        authority.unwrap().certificate().clone()
    }

    /// Who may sign for any name.
    fn unlimited() -> Certificate {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Certificate::from_der(parameters.self_signed(&key).unwrap().der().to_vec()).unwrap()
    }

    /// How many of `roots` are left of a bundle with them, where `known` are in the CA Secret; none where it is damaged.
    fn left(roots: &[&Certificate], known: &[&Certificate]) -> Option<usize> {
        let mut certificates = CertificateStore::default();
        let mut learn = |roots: &[&Certificate]| -> Vec<_> {
            roots.iter().map(|root| certificates.learn(root)).collect()
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
    fn only_a_ca_of_the_same_names_is_adopted() {
        let own = [1, 2, 3, 4].map(|generation| sample::authority(generation).certificate().clone());
        let [a, b, c, d] = own.each_ref();
        let (other, any) = (of_names("other.example.com"), unlimited());
        assert_eq!(left(&[a, b], &[a, b]), Some(2), "nothing is unknown");
        assert_eq!(
            left(&[&any, &other], &[&any, &other]),
            Some(2),
            "what is known stays"
        );
        assert_eq!(left(&[a, b], &[]), Some(2));
        assert_eq!(left(&[a, b, c], &[a]), Some(3));
        assert_eq!(left(&[a, b, c, d], &[a]), Some(3), "two at most");
        assert_eq!(left(&[a, &any], &[a]), None);
        assert_eq!(left(&[a, &other], &[a]), None);
        assert_eq!(left(&[&any], &[]), None);
        assert_eq!(left(&[a, b, &any], &[a]), Some(2));
    }
}
