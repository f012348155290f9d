//! Whatever the text: what is wrong with it is told by line and without what is in it; what is read is written so that it reads alike, by
//! others, too; and no trust bundle comes with a key. What begins as DER does is also read as the content of a block.

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
    trust_bundle::{LONGEST_ENCODED, TrustBundle, TrustBundleError},
};

/// How a sequence begins in DER.
const SEQUENCE: u8 = 0x30;

/// A message is one line of text that can be printed.
fn check_message(message: &str) {
    assert!(!message.chars().any(char::is_control), "{message:?}");
}

fn check_problems(bytes: &[u8], problems: &[UnexpectedBlock]) {
    let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    assert!(problems.is_sorted_by(|one, next| one.line < next.line), "{problems:?}");
    for problem in problems {
        check_message(&problem.to_string());
        let line = lines[problem.line - 1].trim_ascii_end();
        let begins = line.strip_prefix(b"-----BEGIN ").is_some_and(|label| label.ends_with(b"-----"));
        assert_eq!(begins, problem.fault != BlockFault::Text, "{problem}: {line:?}");
    }
}

fn check_certificate(certificate: &Certificate) {
    let read = Certificate::from_der(certificate.der().to_vec());
    assert_eq!(read.as_ref(), Ok(certificate));
    check_message(&certificate.to_string());
    check_message(&format!("{certificate:?}"));
    let _ = certificate.is_signed_by(certificate);
    // As statuses have them.
    let validity = certificate.validity();
    for end in [validity.not_before, validity.not_after] {
        assert_eq!(end.to_string().parse().ok(), Some(end));
    }
}

/// The canonical form is one for everybody.
fn check_bundle(bundle: &TrustBundle) {
    let certificates = bundle.certificates();
    assert!(!certificates.is_empty());
    assert!(certificates.is_sorted_by(|one, next| one < next));
    let text = bundle.to_pem();
    assert!(STANDARD.encode(&text).len() <= LONGEST_ENCODED);
    assert_eq!(TrustBundle::from_foreign_pem(text.as_bytes()), Ok((bundle.clone(), Vec::new())));
    let mut backwards = certificates.to_vec();
    backwards.reverse();
    backwards.extend(certificates.iter().cloned());
    assert_eq!(TrustBundle::new(backwards).as_ref(), Ok(bundle));
    let seen_by_others: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let seen_by_others = seen_by_others.expect("rustls reads what we write");
    assert!(seen_by_others.iter().eq(certificates.iter().map(Certificate::der)));
    for now in certificates.iter().map(Certificate::not_after).chain([Timestamp::UNIX_EPOCH]) {
        match bundle.without_expired(now) {
            Ok(left) => assert!(left.certificates().iter().all(|left| !left.validity().is_over(now))),
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

    // Lines of Windows are lines.
    let text = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
    assert_eq!(pem::read(&text), read);

    match TrustBundle::from_foreign_pem(bytes) {
        Ok((bundle, skipped)) => {
            check_bundle(&bundle);
            assert_eq!(skipped, read.problems);
            assert!(skipped.iter().all(|problem| problem.fault != BlockFault::PrivateKey));
        }
        Err(error) => check_message(&error.to_string()),
    }
    match TrustBundle::from_pem(bytes) {
        Ok(bundle) => assert_eq!(TrustBundle::from_foreign_pem(bytes), Ok((bundle, Vec::new()))),
        Err(error) => check_message(&error.to_string()),
    }
    if let Ok(key) = PrivateKey::from_pem(bytes) {
        let back = PrivateKey::from_pem(key.to_pem().as_bytes()).expect("it reads what it writes");
        assert_eq!(back.public_key(), key.public_key());
        let _ = key.algorithm();
    }
    // As a Secret has both.
    if let Ok(credentials) = Credentials::from_pem(bytes, bytes) {
        unreachable!("a key is no certificate: {credentials:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if bytes.first() == Some(&SEQUENCE) {
        let block = |label| format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(bytes));
        check(block("CERTIFICATE").as_bytes());
        check(block("PRIVATE KEY").as_bytes());
    }
});
