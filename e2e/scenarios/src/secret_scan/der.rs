//! As much of DER (X.690) as it takes to find what is secret in a private key.

use std::ops::Range;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// Secrets of fewer bytes say nothing: version numbers, for example.
const SHORTEST: usize = 16;

/// Of the nine numbers of an RSA key (RFC 8017, A.1.2) those that are secret: the first three are its version, the
/// modulus and the public exponent.
const SECRET_OF_RSA: Range<usize> = 3..9;

/// One element, its content as a place in the whole.
struct Element {
    tag: u8,
    content: Range<usize>,
}

/// Where the secret numbers are in a private key: PKCS#8, or SEC1 or PKCS#1 by themselves.
pub(super) fn secrets(der: &[u8]) -> Vec<Range<usize>> {
    find(der, 0..der.len())
}

fn find(der: &[u8], within: Range<usize>) -> Vec<Range<usize>> {
    let elements = elements(der, within);
    let tags: Vec<u8> = elements.iter().map(|element| element.tag).collect();
    let contents = |range: Range<usize>| {
        let chosen = elements[range].iter();
        chosen
            .map(|element| element.content.clone())
            .filter(|content| content.len() >= SHORTEST)
            .collect()
    };
    match tags.as_slice() {
        // A key, or PKCS#8 around one.
        [SEQUENCE] => find(der, elements[0].content.clone()),
        [INTEGER, SEQUENCE, OCTET_STRING, ..] => find(der, elements[2].content.clone()),
        // An elliptic key (RFC 5915); an Ed25519 key is one more octet string (RFC 8410).
        [INTEGER, OCTET_STRING, ..] => contents(1..2),
        [OCTET_STRING] => contents(0..1),
        [INTEGER, .., INTEGER] if tags.len() >= SECRET_OF_RSA.end => contents(SECRET_OF_RSA),
        _ => Vec::new(),
    }
}

/// The elements one after the other; those after one that cannot be read are left out.
fn elements(der: &[u8], within: Range<usize>) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut start = within.start;
    while let Some(element) = element(der, start, within.end) {
        start = element.content.end;
        elements.push(element);
    }
    elements
}

fn element(der: &[u8], start: usize, end: usize) -> Option<Element> {
    let tag = *der.get(start)?;
    let first = *der.get(start + 1)?;
    let (length, header) = if first < 0x80 {
        (usize::from(first), 2)
    } else {
        let count = usize::from(first & 0x7f);
        let bytes = der.get(start + 2..start + 2 + count)?;
        let length = bytes.iter().try_fold(0_usize, |length, byte| {
            Some(length.checked_mul(256)? + usize::from(*byte))
        })?;
        (length, 2 + count)
    };
    let content = start + header..(start + header).checked_add(length)?;
    (content.end <= end).then_some(Element { tag, content })
}
