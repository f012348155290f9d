//! A search for private keys, or parts of them, in whatever a program lets out.
//!
//! What is secret of a key are some integers: the scalar of an elliptic key; the exponents, primes and the coefficient of
//! an RSA key. What surrounds them in a file, and the public half, is in every certificate. So the search is for the
//! bytes of those integers in every way in which bytes are written down: raw; base64 at each alignment, of the key and of
//! its PEM, in both alphabets; hexadecimal; a list of numbers; escaped text; each also with line breaks inside.

mod der;
#[cfg(test)]
mod tests;

use std::ops::Range;

use aho_corasick::AhoCorasick;
use anyhow::Context;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// How many bytes are looked for at a time. Whatever holds two such blocks without one byte is sure to hold one whole.
const BLOCK: usize = 9;

/// How many characters of text on either side of a find are told apart from others; the find itself is never shown.
const NAMED: usize = 60;

/// What to look for.
#[derive(Debug)]
pub struct SecretScan {
    /// Finds all patterns at once.
    automaton: AhoCorasick,
    /// Of each pattern, in what way it is written.
    ways: Vec<&'static str>,
}

/// Pieces of secrets as they would be written, each with the way in which.
#[derive(Default)]
struct Patterns {
    pieces: Vec<Vec<u8>>,
    ways: Vec<&'static str>,
}

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

// === impl SecretScan ===

impl SecretScan {
    /// A search for these keys, each a block of PEM (PKCS#8, SEC1 or PKCS#1).
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Self> {
        let mut patterns = Patterns::default();
        for pem in keys {
            let body = body(pem);
            let letters: String = body.split_whitespace().collect();
            let der = STANDARD.decode(&letters).context("a private key is not base64")?;
            let secrets = der::secrets(&der);
            anyhow::ensure!(!secrets.is_empty(), "a private key of an unknown form");
            for secret in secrets {
                patterns.add(&der[secret.clone()]);
                patterns.add_encoded(lines(body, &secret).as_bytes());
            }
        }
        let automaton = AhoCorasick::new(&patterns.pieces).context("there are too many keys to look for")?;
        Ok(Self {
            automaton,
            ways: patterns.ways,
        })
    }

    /// Where in `text` parts of keys are, and in what way they are written; never what was found.
    pub fn find(&self, text: &[u8]) -> Vec<String> {
        let squeezed = squeeze(text);
        let as_it_is = self.find_in(text, "");
        let across_breaks = self.find_in(&squeezed, " across spaces, line breaks or escapes");
        as_it_is.into_iter().chain(across_breaks).collect()
    }

    fn find_in(&self, text: &[u8], how: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut end = 0;
        for hit in self.automaton.find_iter(text) {
            // One key is many hits in a row.
            if hit.start() > end + NAMED || found.is_empty() {
                let before =
                    String::from_utf8_lossy(&text[end.max(hit.start().saturating_sub(NAMED))..hit.start()]);
                let way = self.ways[hit.pattern().as_usize()];
                found.push(format!(
                    "holds {} bytes as {way}{how}, at byte {}, near {before:?}",
                    hit.len(),
                    hit.start()
                ));
            }
            end = hit.end();
        }
        found
    }
}

// === impl Patterns ===

impl Patterns {
    /// Every way to write these bytes.
    fn add(&mut self, secret: &[u8]) {
        self.add_blocks("raw bytes", secret, BLOCK);
        self.add_encoded(secret);
        let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
        self.add_pieces("numbers", numbers.windows(BLOCK), |block| {
            block.join(",").into_bytes()
        });
        self.add_pieces("escaped text", secret.windows(BLOCK), |block| {
            squeeze(block.escape_ascii().to_string().as_bytes())
        });
    }

    /// The ways to write these bytes in letters.
    fn add_encoded(&mut self, secret: &[u8]) {
        for skipped in 0..3 {
            let (rest, letters) = (&secret[skipped..], BLOCK / 3 * 4);
            self.add_blocks("base64", STANDARD_NO_PAD.encode(rest).as_bytes(), letters);
            self.add_blocks("base64url", URL_SAFE_NO_PAD.encode(rest).as_bytes(), letters);
        }
        let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add_blocks("hexadecimal", hexadecimal.as_bytes(), 2 * BLOCK);
        self.add_blocks("hexadecimal", hexadecimal.to_uppercase().as_bytes(), 2 * BLOCK);
    }

    fn add_blocks(&mut self, way: &'static str, text: &[u8], size: usize) {
        self.add_pieces(way, text.chunks_exact(size), <[u8]>::to_vec);
    }

    fn add_pieces<T>(
        &mut self,
        way: &'static str,
        pieces: impl Iterator<Item = T>,
        write: impl Fn(T) -> Vec<u8>,
    ) {
        for piece in pieces {
            self.pieces.push(write(piece));
            self.ways.push(way);
        }
    }
}

/// What is between the first and the last line of a block of PEM.
fn body(pem: &str) -> &str {
    let start = pem.find('\n').map_or(0, |end| end + 1);
    let end = pem.find(END).unwrap_or(pem.len());
    &pem[start..end]
}

/// The part of the body of a block of PEM that these bytes of its content alone determine, with its line breaks.
fn lines<'a>(body: &'a str, bytes: &Range<usize>) -> &'a str {
    // The offset in the text of the letter of this number.
    let at = |number: usize| {
        let mut letters = body.char_indices().filter(|(_, letter)| !letter.is_whitespace());
        letters.nth(number).map_or(body.len(), |(offset, _)| offset)
    };
    &body[at((bytes.start * 4).div_ceil(3))..at(bytes.end * 4 / 3)]
}

/// Text without what may break a line of it, or stand between two numbers: spaces, line breaks, their escapes,
/// backslashes.
fn squeeze(text: &[u8]) -> Vec<u8> {
    let mut squeezed = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\\' => {
                // `\n` is escaped again by each format that it passes through.
                let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
                rest = &rest[backslashes..];
                if let [b'n' | b'r', after @ ..] = rest {
                    rest = after;
                }
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => squeezed.push(byte),
        }
    }
    squeezed
}
