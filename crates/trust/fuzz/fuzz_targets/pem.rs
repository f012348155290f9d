//! For any text: each problem is reported by line and without content, what is parsed is encoded so that
//! Windlass and others parse it equally, and no trust bundle contains a key. Input that starts like DER is
//! also parsed as the content of a block.

#![no_main]

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use windlass_trust::{
    pki::{
        Certificate, Credentials, PrivateKey,
        pem::{self, BlockFault, UnexpectedBlock},
    },
    trust_bundle::{MAX_ENCODED_LENGTH, TrustBundle, TrustBundleError},
};

/// The DER tag of a sequence.
const SEQUENCE: u8 = 0x30;

/// A message is one line of printable text.
fn check_message(message: &str) {
    assert!(!message.chars().any(char::is_control), "{message:?}");
}

fn check_problems(bytes: &[u8], problems: &[UnexpectedBlock]) {
    let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    assert!(
        problems.is_sorted_by(|one, next| one.line < next.line),
        "{problems:?}"
    );
    for problem in problems {
        check_message(&problem.to_string());
        let line = lines[problem.line - 1].trim_ascii_end();
        let begins = line
            .strip_prefix(b"-----BEGIN ")
            .is_some_and(|label| label.ends_with(b"-----"));
        assert_eq!(begins, problem.fault != BlockFault::Text, "{problem}: {line:?}");
    }
}

fn check_certificate(certificate: &Certificate) {
    let read = Certificate::from_der(certificate.der().to_vec());
    assert_eq!(read.as_ref(), Ok(certificate));
    check_message(&certificate.to_string());
    check_message(&format!("{certificate:?}"));
    let _ = certificate.is_signed_by(certificate);
    // As in statuses.
    let validity = certificate.validity();
    for end in [validity.not_before, validity.not_after] {
        assert_eq!(end.to_string().parse().ok(), Some(end));
    }
}

/// There is one canonical form.
fn check_bundle(bundle: &TrustBundle) {
    let certificates = bundle.certificates();
    assert!(!certificates.is_empty());
    assert!(certificates.is_sorted_by(|one, next| one < next));
    let text = bundle.to_pem();
    assert!(STANDARD.encode(&text).len() <= MAX_ENCODED_LENGTH);
    assert_eq!(
        TrustBundle::from_foreign_pem(text.as_bytes()),
        Ok((bundle.clone(), Vec::new()))
    );
    let mut backwards = certificates.to_vec();
    backwards.reverse();
    backwards.extend(certificates.iter().cloned());
    assert_eq!(TrustBundle::new(backwards).as_ref(), Ok(bundle));
    let seen_by_others: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let seen_by_others = seen_by_others.expect("rustls parses what we encode");
    assert!(
        seen_by_others
            .iter()
            .eq(certificates.iter().map(Certificate::der))
    );
    for now in certificates
        .iter()
        .map(Certificate::not_after)
        .chain([Timestamp::UNIX_EPOCH])
    {
        match bundle.without_expired(now) {
            Ok(left) => assert!(
                left.certificates()
                    .iter()
                    .all(|left| !left.validity().is_over(now))
            ),
            Err(error) => assert!(matches!(error, TrustBundleError::Expired(_))),
        }
    }
}

fn check(bytes: &[u8]) {
    let read = pem::read(bytes);
    check_problems(bytes, &read.problems);
    read.certificates.iter().for_each(check_certificate);

    let strict = pem::parse(bytes);
    assert_eq!(strict.is_ok(), read.problems.is_empty());
    let written: String = read.certificates.iter().map(Certificate::to_pem).collect();
    assert_eq!(pem::parse(written.as_bytes()).as_ref(), Ok(&read.certificates));

    // Windows line endings are accepted.
    let text = bytes
        .split(|byte| *byte == b'\n')
        .collect::<Vec<_>>()
        .join(&b"\r\n"[..]);
    assert_eq!(pem::read(&text), read);

    match TrustBundle::from_foreign_pem(bytes) {
        Ok((bundle, skipped)) => {
            check_bundle(&bundle);
            assert_eq!(skipped, read.problems);
            assert!(
                skipped
                    .iter()
                    .all(|problem| problem.fault != BlockFault::PrivateKey)
            );
        }
        Err(error) => check_message(&error.to_string()),
    }
    match TrustBundle::from_pem(bytes) {
        Ok(bundle) => assert_eq!(TrustBundle::from_foreign_pem(bytes), Ok((bundle, Vec::new()))),
        Err(error) => check_message(&error.to_string()),
    }
    if let Ok(key) = PrivateKey::from_pem(bytes) {
        let back = PrivateKey::from_pem(key.to_pem().as_bytes()).expect("it parses what it encodes");
        assert_eq!(back.public_key(), key.public_key());
        let _ = key.algorithm();
    }
    // As in a Secret, which has both.
    if let Ok(credentials) = Credentials::from_pem(bytes, bytes) {
        unreachable!("a key is not a certificate: {credentials:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if bytes.first() == Some(&SEQUENCE) {
        let block = |label| {
            format!(
                "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
                STANDARD.encode(bytes)
            )
        };
        check(block("CERTIFICATE").as_bytes());
        check(block("PRIVATE KEY").as_bytes());
    }
});
