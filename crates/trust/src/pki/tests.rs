use proptest::prelude::*;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use super::{
    pem::{BlockFault, UnexpectedBlock},
    sample::{DAY, NOW, YEAR, authority, key, names, rsa_key_pair, terms},
    *,
};

fn leaf_of(authority: &CertificateAuthority) -> Certificate {
    authority.issue(&names(), &key(), &terms(DAY)).unwrap()
}

fn extension<'a>(parsed: &'a X509Certificate<'_>, desired: fn(&ParsedExtension<'_>) -> bool) -> Option<bool> {
    parsed
        .extensions()
        .iter()
        .find(|extension| desired(extension.parsed_extension()))
        .map(|extension| extension.critical)
}

#[test]
fn a_root_signs_only_for_its_service() {
    let root = authority(7);
    let root = root.certificate();
    assert!(root.is_authority());
    assert!(root.is_signed_by(root));
    assert_eq!(root.path_length(), Some(1));
    assert!(root.dns_names().is_empty());
    assert_eq!(
        root.permitted_dns_names().unwrap(),
        names().iter().collect::<Vec<_>>()
    );
    assert!(root.permits(&names()));
    assert!(!root.permits(&DnsNames::for_service("other", "system", &[]).unwrap()));

    let (_, parsed) = X509Certificate::from_der(root.der()).unwrap();
    let is_constraints =
        |extension: &ParsedExtension<'_>| matches!(extension, ParsedExtension::NameConstraints(_));
    assert_eq!(extension(&parsed, is_constraints), Some(true));
    let constraints = parsed.name_constraints().unwrap().unwrap().value;
    assert_eq!(constraints.excluded_subtrees.as_ref().unwrap().len(), 2);
    let usage = parsed.key_usage().unwrap().unwrap();
    assert!(usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign());
    assert!(parsed.extended_key_usage().unwrap().is_none());
    assert!(parsed.basic_constraints().unwrap().unwrap().critical);
}

#[test]
fn a_root_name_contains_service_generation_and_key_in_64_characters() {
    let root = authority(7);
    let name = root.certificate().common_name().unwrap();
    assert!(name.starts_with("hook.system.svc CA 7 "), "{name}");

    let long = DnsNames::for_service(&"s".repeat(63), &"n".repeat(63), &[]).unwrap();
    let root = CertificateAuthority::self_signed(&long, u32::MAX, key(), &terms(YEAR)).unwrap();
    let name = root.certificate().common_name().unwrap();
    assert_eq!(name.len(), 64);
    assert!(name.contains(&u32::MAX.to_string()), "{name}");

    let leaf = root.issue(&long, &key(), &terms(DAY)).unwrap();
    assert_eq!(leaf.common_name(), None);
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    assert!(parsed.subject_alternative_name().unwrap().unwrap().critical);
}

#[test]
fn a_leaf_is_valid_for_exactly_its_names() {
    let root = authority(1);
    let leaf = leaf_of(&root);
    assert!(leaf.is_for(&names()));
    assert_eq!(leaf.common_name(), Some("hook.system.svc"));
    assert!(!leaf.is_authority());
    assert!(leaf.is_signed_by(root.certificate()));
    assert!(!leaf.is_signed_by(authority(1).certificate()));
    assert_eq!(
        leaf.authority_key_identifier().unwrap(),
        root.certificate().subject_key_identifier().unwrap()
    );
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    assert!(parsed.key_usage().unwrap().unwrap().value.digital_signature());
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth && !usage.any);
}

#[test]
fn changing_any_byte_invalidates_a_certificate() {
    let root = authority(3);
    let root = root.certificate();
    let (_, parsed) = X509Certificate::from_der(root.der()).unwrap();
    let header = 4;
    let algorithm = header + parsed.tbs_certificate.as_ref().len();
    let signature = root.der().len() - parsed.signature_value.data.len();
    for position in (0..header).chain(algorithm..signature) {
        for byte in 0..=u8::MAX {
            let mut der = root.der().to_vec();
            der[position] = byte;
            if let Ok(read) = Certificate::from_der(der)
                && read != *root
            {
                assert!(!read.is_signed_by(&read), "{byte:#04x} at {position}");
            }
        }
    }
}

#[test]
fn a_leaf_expires_no_later_than_its_issuer() {
    let root = authority(1);
    let terms = terms(YEAR * 3);
    let leaf = root.issue(&names(), &key(), &terms).unwrap();
    assert_eq!(leaf.not_after(), root.certificate().not_after());
    assert_eq!(leaf.validity().not_before, terms.validity.not_before);
}

#[test]
fn no_expired_certificate_is_issued() {
    let root = authority(1);
    let late = Terms {
        now: root.certificate().not_after(),
        ..terms(YEAR * 3)
    };
    let turned_around = Terms {
        now: NOW - YEAR,
        validity: Validity {
            not_before: NOW + DAY,
            not_after: NOW,
        },
        ..terms(DAY)
    };
    for terms in [late, terms(-DAY), turned_around] {
        let issued = root.issue(&names(), &key(), &terms);
        assert!(matches!(issued, Err(IssueError::Ended { .. })), "{issued:?}");
    }
}

#[test]
fn names_outside_the_constraints_are_rejected() {
    let extra = DnsNames::for_service("hook", "system", &["hook.example.com".into()]).unwrap();
    let error = authority(1).issue(&extra, &key(), &terms(DAY)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("is not permitted to sign for hook.example.com"),
        "{error}"
    );
}

#[test]
fn a_cross_certificate_chains_the_new_root_to_the_old_one() {
    let (current, next) = (authority(1), authority(2));
    let cross = current.cross_sign(next.certificate(), &terms(YEAR * 5)).unwrap();
    assert!(cross.is_authority());
    assert_eq!(cross.path_length(), Some(0));
    assert_eq!(cross.public_key(), next.certificate().public_key());
    assert_eq!(cross.common_name(), next.certificate().common_name());
    assert_eq!(
        cross.subject_key_identifier(),
        next.certificate().subject_key_identifier()
    );
    assert_eq!(
        cross.permitted_dns_names(),
        next.certificate().permitted_dns_names()
    );
    assert!(cross.is_signed_by(current.certificate()));
    assert!(leaf_of(&next).is_signed_by(&cross));
    assert!(matches!(
        current.cross_sign(&leaf_of(&next), &terms(YEAR * 5)),
        Err(IssueError::NotAnAuthority(_))
    ));
}

#[test]
fn a_foreign_ca_with_an_unsupported_name_cannot_sign() {
    let pair = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    for name in ["organization", "printable"] {
        let mut distinguished_name = rcgen::DistinguishedName::new();
        let printable = rcgen::DnValue::PrintableString(name.try_into().unwrap());
        distinguished_name.push(rcgen::DnType::CommonName, printable);
        if name == "organization" {
            distinguished_name.push(rcgen::DnType::OrganizationName, name);
        }
        parameters.distinguished_name = distinguished_name;
        let certificate = parameters.self_signed(&pair).unwrap().der().to_vec();
        let certificate = Certificate::from_der(certificate).unwrap();
        let key = PrivateKey::from_pem(pair.serialize_pem().as_bytes()).unwrap();
        let foreign = CertificateAuthority::new(certificate.clone(), key).unwrap();
        assert!(matches!(
            foreign.issue(&names(), &super::sample::key(), &terms(DAY)),
            Err(IssueError::ForeignName(_))
        ));
        assert!(matches!(
            authority(1).cross_sign(&certificate, &terms(DAY)),
            Err(IssueError::ForeignName(_))
        ));
    }
}

#[test]
fn foreign_names_are_escaped_to_one_line() {
    let mut parameters = rcgen::CertificateParams::default();
    let mut distinguished_name = rcgen::DistinguishedName::new();
    distinguished_name.push(rcgen::DnType::CommonName, "a\nb\u{1b}[0m\u{202e}");
    parameters.distinguished_name = distinguished_name;
    parameters.serial_number = Some(vec![1].into());
    let pair = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&pair).unwrap().der().to_vec();
    let certificate = Certificate::from_der(certificate).unwrap();
    assert_eq!(certificate.common_name(), Some("a\nb\u{1b}[0m\u{202e}"));
    assert_eq!(certificate.to_string(), "a\\nb\\u{1b}[0m\\u{202e} (serial 01)");
}

#[test]
fn a_cross_certificate_expires_with_the_earlier_root() {
    let long = CertificateAuthority::self_signed(&names(), 2, key(), &terms(YEAR * 2)).unwrap();
    let short = authority(1);
    let end = short.certificate().not_after();
    for (issuer, other) in [(&short, &long), (&long, &short)] {
        let cross = issuer.cross_sign(other.certificate(), &terms(YEAR * 5)).unwrap();
        assert_eq!(cross.not_after(), end);
    }
}

#[test]
fn rsa_keys_sign_and_serve() {
    let root = CertificateAuthority::self_signed(&names(), 1, rsa_key_pair(0).into(), &terms(YEAR)).unwrap();
    let key = PrivateKey::from(rsa_key_pair(0));
    let leaf = root.issue(&names(), &key, &terms(DAY)).unwrap();
    assert!(leaf.is_signed_by(root.certificate()));
    let cross = root
        .cross_sign(authority(2).certificate(), &terms(YEAR * 5))
        .unwrap();
    assert!(cross.is_signed_by(root.certificate()));
}

#[test]
fn serial_numbers_are_positive() {
    let root = authority(1);
    for first in [0x01, 0x7f, 0x80, 0xff] {
        let mut serial = [3; 16];
        serial[0] = first;
        let terms = Terms { serial, ..terms(DAY) };
        let leaf = root.issue(&names(), &key(), &terms).unwrap();
        assert_eq!(leaf.serial()[0] & 0x80, 0);
        assert!(leaf.serial().ends_with(&serial[1..]));
        assert!((16..=20).contains(&leaf.serial().len()));
    }
}

#[test]
fn only_a_ca_certificate_with_its_key_is_an_authority() {
    let root = authority(1);
    let put_together = |certificate: &Certificate, key: &PrivateKey| {
        let key = PrivateKey::from_pem(key.to_pem().as_bytes()).unwrap();
        CertificateAuthority::new(certificate.clone(), key)
    };
    let back = put_together(root.certificate(), root.key()).unwrap();
    assert_eq!(back.certificate(), root.certificate());

    let other = authority(2);
    let leaf_key = key();
    let leaf = root.issue(&names(), &leaf_key, &terms(DAY)).unwrap();
    assert_eq!(
        put_together(root.certificate(), other.key()).unwrap_err(),
        ReadAuthorityError::Mismatch
    );
    assert!(matches!(
        put_together(&leaf, &leaf_key).unwrap_err(),
        ReadAuthorityError::NotAnAuthority(_)
    ));
}

#[test]
fn credentials_round_trip_and_invalid_ones_are_rejected() {
    let (current, next) = (authority(1), authority(2));
    let leaf_key = key();
    let leaf = next.issue(&names(), &leaf_key, &terms(DAY)).unwrap();
    let cross = current.cross_sign(next.certificate(), &terms(YEAR * 5)).unwrap();
    let credentials = Credentials::new(leaf, vec![cross], leaf_key).unwrap();
    let (chain, private_key) = (credentials.chain_pem(), credentials.key().to_pem());
    let back = Credentials::from_pem(chain.as_bytes(), private_key.as_bytes()).unwrap();
    assert_eq!(back.leaf(), credentials.leaf());
    assert_eq!(back.intermediates(), credentials.intermediates());
    assert!(!format!("{back:?}").contains(private_key.lines().nth(1).unwrap()));

    let read = |chain: &str, key: &str| Credentials::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err();
    assert_eq!(read(&chain, &key().to_pem()), ReadCredentialsError::Mismatch);
    assert_eq!(read("", &private_key), ReadCredentialsError::NoLeaf);
    assert!(matches!(read(&chain, ""), ReadCredentialsError::Key(_)));
    assert!(matches!(
        read(&chain[1..], &private_key),
        ReadCredentialsError::Chain(_)
    ));
}

#[test]
fn pem_errors_name_the_line_and_hide_the_content() {
    let root = authority(1);
    let good = root.certificate().to_pem();
    let private_key = root.key().to_pem();
    let private_key = private_key.as_str();
    let cut = &good[..good.len() / 2];
    let pem = format!(
        "# a comment\nof two lines\n{good}{private_key}-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n\
         -----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n{cut}\n{good}"
    );
    let reading = pem::read(pem.as_bytes());
    assert_eq!(reading.certificates.len(), 2);
    let lines = |text: &str| text.lines().count();
    let (after_good, after_key) = (3 + lines(&good), 3 + lines(&good) + lines(private_key));
    let faults: Vec<_> = reading
        .problems
        .iter()
        .map(|problem| (problem.line, &problem.fault))
        .collect();
    assert_eq!(faults[0], (1, &BlockFault::Text));
    assert_eq!(faults[1], (after_good, &BlockFault::PrivateKey));
    assert_eq!(faults[2], (after_key, &BlockFault::NotBase64));
    assert!(matches!(faults[3], (line, BlockFault::NotACertificate(_)) if line == after_key + 3));
    assert_eq!(faults[4], (after_key + 6, &BlockFault::OtherBlock));
    assert_eq!(faults[5], (after_key + 9, &BlockFault::CutOff));
    assert_eq!(faults.len(), 6);
    let message = pem::parse(pem.as_bytes()).unwrap_err().to_string();
    assert!(
        !message.contains(private_key.lines().nth(1).unwrap()),
        "{message}"
    );
}

#[test]
fn trailing_bytes_after_a_certificate_are_rejected() {
    let mut der = authority(1).certificate().der().to_vec();
    der.extend([0, 0]);
    assert_eq!(Certificate::from_der(der), Err(InspectError::TrailingBytes(2)));
}

#[test]
fn line_endings_and_a_missing_final_newline_are_accepted() {
    let root = authority(1);
    let pem = root.certificate().to_pem();
    for written in [
        pem.replace('\n', "\r\n"),
        pem.trim_end().to_owned(),
        format!("\n\n{pem}\n"),
    ] {
        assert_eq!(
            pem::parse(written.as_bytes()).unwrap(),
            [root.certificate().clone()]
        );
    }
}

#[test]
fn blocks_with_headers_are_skipped() {
    let pem = authority(1).certificate().to_pem();
    let pem = pem.replacen('\n', "\nProc-Type: 4\n\n", 1);
    let problem = UnexpectedBlock {
        line: 1,
        fault: BlockFault::Headers,
    };
    assert_eq!(pem::read(pem.as_bytes()).problems, [problem]);
}

proptest! {
    #[test]
    fn reading_any_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(pem::read(&bytes).certificates.is_empty());
        prop_assert!(Certificate::from_der(bytes.clone()).is_err());
        prop_assert!(PrivateKey::from_pem(&bytes).is_err());
    }

    #[test]
    fn no_changed_byte_yields_another_valid_certificate(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
        static ROOT: std::sync::LazyLock<CertificateAuthority> = std::sync::LazyLock::new(|| authority(1));
        let mut pem = ROOT.certificate().to_pem().into_bytes();
        let position = position.index(pem.len());
        pem[position] = byte;
        for certificate in pem::read(&pem).certificates {
            // The encoding around the signed part is not signed, but it holds no information about the
            // certificate.
            prop_assert!(signed(&certificate) == signed(ROOT.certificate()) || !certificate.is_signed_by(ROOT.certificate()));
        }
    }
}

/// Returns the part of a certificate that its signature covers.
fn signed(certificate: &Certificate) -> Vec<u8> {
    let pem = certificate.to_pem();
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    pem.parse_x509().unwrap().tbs_certificate.as_ref().to_vec()
}
