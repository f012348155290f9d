//! Blocks of PEM.

use std::ops::Range;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// Every block of PEM in a text that holds a private key, of whatever kind.
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

/// What is between the first and the last line of a block of PEM.
pub(super) fn body(pem: &str) -> &str {
    let start = pem.find('\n').map_or(0, |end| end + 1);
    let end = pem.find(END).unwrap_or(pem.len());
    &pem[start..end]
}

/// The part of the body of a block of PEM that these bytes of its content alone determine, with its line breaks.
pub(super) fn lines<'a>(body: &'a str, bytes: &Range<usize>) -> &'a str {
    // The offset in the text of the letter of this number.
    let at = |number: usize| {
        let mut letters = body.char_indices().filter(|(_, letter)| !letter.is_whitespace());
        letters.nth(number).map_or(body.len(), |(offset, _)| offset)
    };
    &body[at((bytes.start * 4).div_ceil(3))..at(bytes.end * 4 / 3)]
}
