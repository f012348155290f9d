use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use windlass_api::{PrivateKeyAlgorithm, PrivateKeySpec as KeySpec};
use windlass_cluster::keys;
use windlass_trust::pki::PrivateKey;

use super::{SecretScan, der, patterns::BLOCK, pem::body, private_keys};

/// A key as the operator generates it, in PEM, and the public key of its certificate.
async fn key(algorithm: PrivateKeyAlgorithm) -> (String, Vec<u8>) {
    let spec = KeySpec {
        algorithm,
        ..KeySpec::default()
    };
    let key = PrivateKey::from(keys::generate(&spec).await.unwrap());
    (key.to_pem().to_string(), key.public_key())
}

/// The middle line, which is secret for every algorithm.
fn middle(pem: &str) -> &str {
    let lines: Vec<&str> = body(pem).lines().collect();
    lines[lines.len() / 2]
}

/// All encodings of a key that the test covers.
fn written_down(pem: &str) -> Vec<(&'static str, Vec<u8>)> {
    let der = STANDARD
        .decode(body(pem).split_whitespace().collect::<String>())
        .unwrap();
    let secret = &der[der::secrets(&der).remove(0)];
    let line = middle(pem);
    let wrapped: String = STANDARD
        .encode(&der)
        .as_bytes()
        .chunks(19)
        .map(|chunk| format!("{}\r\n", std::str::from_utf8(chunk).unwrap()))
        .collect();
    let mut ways: Vec<(&str, Vec<u8>)> = vec![
        ("PEM", pem.into()),
        ("a line of PEM", line.into()),
        ("PEM as JSON", serde_json::to_vec(pem).unwrap()),
        (
            "PEM as JSON in JSON",
            serde_json::to_vec(&serde_json::to_string(pem).unwrap()).unwrap(),
        ),
        ("wrapped base64", wrapped.into()),
        ("raw DER", der.clone()),
        ("the secret alone", secret.to_vec()),
        ("a part of the secret", secret[5..5 + 2 * BLOCK - 1].to_vec()),
        ("Debug of bytes", format!("{secret:?}").into()),
        ("pretty Debug of bytes", format!("{secret:#?}").into()),
        ("escaped bytes", secret.escape_ascii().to_string().into()),
        (
            "escaped bytes as JSON",
            serde_json::to_vec(&secret.escape_ascii().to_string()).unwrap(),
        ),
    ];
    for prefix in ["", "x", "xy"] {
        let shifted = [prefix.as_bytes(), &der].concat();
        ways.push(("base64", STANDARD.encode(&shifted).into()));
        ways.push(("base64url", URL_SAFE_NO_PAD.encode(&shifted).into()));
        let shifted = [prefix, pem].concat();
        ways.push(("base64 of PEM", STANDARD.encode(&shifted).into()));
        ways.push(("base64url of PEM", URL_SAFE_NO_PAD.encode(&shifted).into()));
        let alone = [prefix.as_bytes(), secret].concat();
        ways.push(("base64 of the secret", STANDARD.encode(alone).into()));
    }
    let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    ways.push(("hexadecimal", hexadecimal.clone().into()));
    ways.push(("upper-case hexadecimal", hexadecimal.to_uppercase().into()));
    ways
}

#[tokio::test]
async fn a_planted_key_is_found_in_every_encoding() {
    for algorithm in [PrivateKeyAlgorithm::Ecdsa, PrivateKeyAlgorithm::Rsa] {
        let (pem, _) = key(algorithm).await;
        let (other, _) = key(PrivateKeyAlgorithm::Ecdsa).await;
        let scan = SecretScan::new([other.as_str(), pem.as_str()]).unwrap();
        for (way, bytes) in written_down(&pem) {
            let text = [b"{\"message\":\"some log line ", bytes.as_slice(), b"\"}\n"].concat();
            let found = scan.find(&text);
            assert!(!found.is_empty(), "{algorithm:?} as {way} was not found");
            let told = found.join("\n");
            assert!(
                !told.contains(body(&pem).lines().nth(1).unwrap()),
                "{way}: shown: {told}"
            );
        }
    }
}

#[tokio::test]
async fn public_keys_are_not_secret() {
    for algorithm in [PrivateKeyAlgorithm::Ecdsa, PrivateKeyAlgorithm::Rsa] {
        let (pem, public) = key(algorithm).await;
        let (other, _) = key(algorithm).await;
        let scan = SecretScan::new([pem.as_str()]).unwrap();
        let harmless = [
            public.clone(),
            STANDARD.encode(&public).into(),
            format!("{public:?}").into(),
            other.into(),
            b"-----BEGIN PRIVATE KEY-----".to_vec(),
        ];
        for text in harmless {
            assert_eq!(scan.find(&text), Vec::<String>::new());
        }
    }
}

#[test]
fn keys_are_picked_out_of_other_blocks() {
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let pkcs8 = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----";
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nCCCC\n-----END EC PRIVATE KEY-----";
    let text = format!("{certificate}{pkcs8}\n{certificate}{sec1}");
    assert_eq!(private_keys(&text).collect::<Vec<_>>(), [pkcs8, sec1]);
}

#[test]
fn an_unreadable_key_is_rejected() {
    let garbage = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(SecretScan::new([garbage]).is_err());
}
