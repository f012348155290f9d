//! The part of DER (X.690) that is needed to find the secret numbers of a private key.

use std::ops::Range;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// Shorter numbers are not secret: version numbers, for example.
const SHORTEST: usize = 16;

/// The first three of the nine numbers of an RSA key (RFC 8017, A.1.2) are public: version, modulus, public
/// exponent.
const SECRET_OF_RSA: Range<usize> = 3..9;

/// One element; the content is a range of the input.
struct Element {
    tag: u8,
    content: Range<usize>,
}

/// The ranges of the secret numbers of a private key in PKCS#8, SEC1 or PKCS#1.
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
        // A key, or PKCS#8 around a key.
        [SEQUENCE] => find(der, elements[0].content.clone()),
        [INTEGER, SEQUENCE, OCTET_STRING, ..] => find(der, elements[2].content.clone()),
        // An elliptic key (RFC 5915); in an Ed25519 key the octet string is nested (RFC 8410).
        [INTEGER, OCTET_STRING, ..] => contents(1..2),
        [OCTET_STRING] => contents(0..1),
        [INTEGER, .., INTEGER] if tags.len() >= SECRET_OF_RSA.end => contents(SECRET_OF_RSA),
        _ => Vec::new(),
    }
}

/// The elements in sequence, up to the first that cannot be read.
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
