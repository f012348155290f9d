//! Blocks of PEM.

use std::ops::Range;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// The PEM blocks of private keys in a text.
pub fn private_keys(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(BEGIN).filter_map(move |(start, _)| {
        let block = &text[start..];
        let label = block[BEGIN.len()..].split("-----").next()?;
        let end = block.find(&format!("{END}{label}-----"))?;
        label
            .ends_with("PRIVATE KEY")
            .then(|| &block[..end + END.len() + label.len() + 5])
    })
}

/// The body of a PEM block, between its first and last line.
pub(super) fn body(pem: &str) -> &str {
    let start = pem.find('\n').map_or(0, |end| end + 1);
    let end = pem.find(END).unwrap_or(pem.len());
    &pem[start..end]
}

/// The part of a PEM body that encodes only these bytes of the content, with its line breaks.
pub(super) fn lines<'a>(body: &'a str, bytes: &Range<usize>) -> &'a str {
    // Maps the index of a letter to its offset in the text.
    let at = |number: usize| {
        let mut letters = body.char_indices().filter(|(_, letter)| !letter.is_whitespace());
        letters.nth(number).map_or(body.len(), |(offset, _)| offset)
    };
    &body[at((bytes.start * 4).div_ceil(3))..at(bytes.end * 4 / 3)]
}
