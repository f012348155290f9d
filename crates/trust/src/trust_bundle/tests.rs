use std::{slice, sync::LazyLock};

use jiff::SignedDuration;
use proptest::{prelude::*, sample::subsequence};

use super::{verify::Untrusted, *};
use crate::pki::{
    Certificate, CertificateAuthority, DnsNames, Terms,
    pem::BlockFault,
    sample::{NOW, YEAR, authority, key, names, terms, valid_for},
};

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Roots that expire one year after another.
static ROOTS: LazyLock<Vec<Certificate>> = LazyLock::new(|| {
    (1..=5)
        .map(|generation: u8| {
            let terms = Terms {
                serial: [generation; 16],
                now: NOW,
                validity: valid_for(YEAR * i32::from(generation)),
            };
            let root = CertificateAuthority::self_signed(&names(), generation.into(), key(), &terms).unwrap();
            root.certificate().clone()
        })
        .collect()
});

fn union(one: &TrustBundle, other: &TrustBundle) -> TrustBundle {
    let certificates = one.certificates.iter().chain(&other.certificates);
    TrustBundle::new(certificates.cloned()).unwrap()
}

fn includes(one: &TrustBundle, other: &TrustBundle) -> bool {
    let mut certificates = other.certificates.iter();
    certificates.all(|certificate| one.certificates.contains(certificate))
}

fn bundle(indices: &[usize]) -> TrustBundle {
    TrustBundle::new(indices.iter().map(|&index| ROOTS[index].clone())).unwrap()
}

fn bundles() -> impl Strategy<Value = TrustBundle> {
    subsequence(ROOTS.clone(), 1..=ROOTS.len())
        .prop_shuffle()
        .prop_map(|certificates| TrustBundle::new(certificates).unwrap())
}

#[test]
fn a_bundle_has_one_block_per_certificate_oldest_first() {
    let pem = bundle(&[2, 0, 2]).to_pem();
    assert_eq!(pem, ROOTS[0].to_pem() + &ROOTS[2].to_pem());
    assert!(pem.ends_with("-----END CERTIFICATE-----\n"));
    assert!(pem.lines().all(|line| !line.is_empty() && line.len() <= 64));
}

#[test]
fn an_empty_bundle_is_rejected() {
    assert_eq!(TrustBundle::new([]), Err(TrustBundleError::Empty));
    assert_eq!(TrustBundle::from_pem(b""), Err(TrustBundleError::Empty));
    assert_eq!(TrustBundle::from_pem(b"\n\n"), Err(TrustBundleError::Empty));
    assert_eq!(
        TrustBundle::from_foreign_pem(b"# nothing\n").unwrap_err(),
        TrustBundleError::Empty
    );
}

#[test]
fn own_bundles_contain_only_roots() {
    let root = authority(1);
    let pem = root.certificate().to_pem();
    let leaf = root.issue(&names(), &key(), &terms(YEAR)).unwrap();
    let cross = root.cross_sign(authority(2).certificate(), &terms(YEAR)).unwrap();
    let next_line = pem.lines().count() + 1;
    for (content, expected) in [
        (
            pem.clone() + "junk\n" + &pem,
            format!("line {next_line}: text outside of a PEM block"),
        ),
        (
            pem.clone() + &root.key().to_pem(),
            format!("line {next_line}: a private key"),
        ),
        (
            pem[..pem.len() - 10].to_owned(),
            "line 1: a truncated PEM block".into(),
        ),
        (
            pem.clone() + &leaf.to_pem(),
            format!("{leaf}, which is not a root CA"),
        ),
        (
            pem.clone() + &cross.to_pem(),
            format!("{cross}, which is not a root CA"),
        ),
    ] {
        let error = TrustBundle::from_pem(content.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&expected), "{error} does not contain {expected}");
    }
}

#[test]
fn foreign_bundles_are_read_as_clients_read_them() {
    let root = authority(1);
    let pem = root.certificate().to_pem();
    let (read, problems) = TrustBundle::from_foreign_pem(format!("# our CA\n{pem}").as_bytes()).unwrap();
    assert_eq!(read.certificates(), [root.certificate().clone()]);
    assert_eq!(problems[0].fault, BlockFault::Text);

    // Self-signed servers are trusted through their own certificate.
    let leaf = root.issue(&names(), &key(), &terms(YEAR)).unwrap();
    assert!(TrustBundle::from_foreign_pem(leaf.to_pem().as_bytes()).is_ok());

    for content in [
        pem.clone() + &root.key().to_pem(),
        pem[..pem.len() / 2].to_owned() + "\n" + &pem,
        pem.clone() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        assert!(matches!(
            TrustBundle::from_foreign_pem(content.as_bytes()),
            Err(TrustBundleError::Malformed(_))
        ));
    }
}

#[test]
fn expired_cas_are_dropped_unless_all_are_expired() {
    let all = bundle(&[0, 1, 2]);
    let first_end = ROOTS[0].not_after();
    assert_eq!(all.without_expired(first_end).unwrap(), all);
    assert_eq!(all.without_expired(first_end + SECOND).unwrap(), bundle(&[1, 2]));
    assert_eq!(
        all.without_expired(ROOTS[4].not_after()),
        Err(TrustBundleError::Expired(ROOTS[2].not_after()))
    );
    // A clock that is behind must not remove a certificate that is about to be used.
    assert_eq!(all.without_expired(NOW - YEAR).unwrap(), all);
}

#[test]
fn a_bundle_that_is_too_large_is_rejected() {
    let root = authority(1);
    let many = |count: u8| {
        (1..=count).map(move |serial| {
            // One key suffices: only the size matters.
            let key = crate::pki::PrivateKey::from_pem(root.key().to_pem().as_bytes()).unwrap();
            let terms = Terms {
                serial: [serial; 16],
                ..terms(YEAR)
            };
            let root = CertificateAuthority::self_signed(&names(), 1, key, &terms).unwrap();
            root.certificate().clone()
        })
    };
    let certificates: Vec<_> = many(100).collect();
    let fit = (1..certificates.len())
        .take_while(|&count| TrustBundle::new(certificates[..count].to_vec()).is_ok())
        .last()
        .unwrap();
    let longest = TrustBundle::new(certificates[..fit].to_vec()).unwrap();
    use base64::{Engine, engine::general_purpose::STANDARD};
    assert!(STANDARD.encode(longest.to_pem()).len() <= MAX_ENCODED_LENGTH);
    let error = TrustBundle::new(certificates[..=fit].to_vec()).unwrap_err();
    assert!(matches!(error, TrustBundleError::TooLong(length) if length > MAX_ENCODED_LENGTH));
}

#[test]
fn a_chain_is_rejected_for_the_reason_clients_give() {
    let (root, other) = (authority(1), authority(2));
    let trust = TrustBundle::new([root.certificate().clone()]).unwrap();
    let leaf = root.issue(&names(), &key(), &terms(YEAR)).unwrap();
    let stranger = other.issue(&names(), &key(), &terms(YEAR)).unwrap();
    let verify = |chain: &[Certificate], host: &str, now| trust.verify(chain, host, now);
    assert_eq!(verify(slice::from_ref(&leaf), "hook.system.svc", NOW), Ok(()));
    assert_eq!(
        verify(slice::from_ref(&leaf), "hook.system.svc.cluster.local", NOW),
        Ok(())
    );
    assert_eq!(verify(&[], "hook.system.svc", NOW), Err(Untrusted::NoCertificate));
    assert!(matches!(
        verify(slice::from_ref(&leaf), "", NOW),
        Err(Untrusted::Host(_))
    ));
    for (chain, host, now) in [
        (leaf.clone(), "other.system.svc", NOW),
        (leaf.clone(), "hook.system.svc", NOW + YEAR + SECOND),
        (leaf, "hook.system.svc", NOW - YEAR),
        (stranger, "hook.system.svc", NOW),
    ] {
        let refused = verify(&[chain], host, now);
        assert!(matches!(refused, Err(Untrusted::Refused { .. })), "{refused:?}");
    }
}

#[test]
fn constraints_allow_only_wildcards_and_extra_names() {
    let extra = ["*.example.com".to_owned(), "hook.example.org".to_owned()];
    let names = DnsNames::for_service("hook", "system", &extra).unwrap();
    let root = CertificateAuthority::self_signed(&names, 1, key(), &terms(YEAR)).unwrap();
    let trust = TrustBundle::new([root.certificate().clone()]).unwrap();
    let leaf = root.issue(&names, &key(), &terms(YEAR)).unwrap();
    for (host, accepted) in [
        ("hook.system.svc", true),
        ("a.example.com", true),
        ("hook.example.org", true),
        ("a.b.example.com", false),
        ("example.org", false),
    ] {
        assert_eq!(names.match_host(host), accepted, "{host}");
        let verified = trust.verify(slice::from_ref(&leaf), host, NOW);
        assert_eq!(verified.is_ok(), accepted, "{host}: {verified:?}");
    }
}

proptest! {
    #[test]
    fn a_bundle_round_trips(bundle in bundles()) {
        let pem = bundle.to_pem();
        let read = TrustBundle::from_pem(pem.as_bytes()).unwrap();
        prop_assert_eq!(read.to_pem(), pem);
        prop_assert_eq!(read, bundle);
    }

    #[test]
    fn order_and_duplicates_do_not_matter(one in bundles(), two in bundles(), three in bundles()) {
        let both = union(&one, &two);
        prop_assert_eq!(&both, &union(&two, &one));
        prop_assert_eq!(union(&both, &three), union(&one, &union(&two, &three)));
        prop_assert_eq!(&union(&both, &both), &both);
        prop_assert!(includes(&both, &one) && includes(&both, &two));
        let is_in = |bundle: &TrustBundle, root| bundle.certificates.contains(root);
        prop_assert!(both.certificates().iter().all(|root| is_in(&one, root) || is_in(&two, root)));
    }

    #[test]
    fn the_bytes_depend_only_on_the_certificates(one in bundles(), two in bundles()) {
        prop_assert_eq!(one == two, one.to_pem() == two.to_pem());
        prop_assert_eq!(one == two, includes(&one, &two) && includes(&two, &one));
    }

    #[test]
    fn dropping_expired_cas_keeps_exactly_the_others(bundle in bundles(), days in 0_i64..365 * 6) {
        let now = NOW + SignedDuration::from_hours(24 * days);
        let valid = |root: &&Certificate| root.not_after() >= now;
        let rest: Vec<_> = bundle.certificates().iter().filter(valid).cloned().collect();
        match bundle.without_expired(now) {
            Ok(left) => prop_assert_eq!(left.certificates(), rest),
            Err(error) => {
                prop_assert!(matches!(error, TrustBundleError::Expired(_)));
                prop_assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn a_damaged_bundle_is_rejected_or_unchanged(
        bundle in bundles(),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut pem = bundle.to_pem().into_bytes();
        let position = position.index(pem.len());
        pem[position] = byte;
        if let Ok(read) = TrustBundle::from_pem(&pem) {
            prop_assert_eq!(read, bundle);
        }
    }

    #[test]
    fn a_truncated_bundle_is_rejected_or_ends_with_a_whole_certificate(bundle in bundles(), end in any::<prop::sample::Index>()) {
        let pem = bundle.to_pem();
        let end = end.index(pem.len());
        if let Ok(read) = TrustBundle::from_pem(&pem.as_bytes()[..end]) {
            prop_assert!(includes(&bundle, &read));
        }
    }

    #[test]
    fn garbage_is_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(TrustBundle::from_pem(&bytes).is_err());
        prop_assert!(TrustBundle::from_foreign_pem(&bytes).is_err());
    }
}
